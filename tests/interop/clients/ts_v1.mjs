// Drive a server with the official TypeScript client 1.x and print one JSON line.
// Usage: node ts_v1.mjs FOLDER_WITH_NODE_MODULES URL
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , folder, url] = process.argv;
const require = createRequire(join(folder, "package.json"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
setTimeout(() => { console.error("out of time"); process.exit(3); }, 60000).unref();

const client = new Client({ name: "interop", version: "1.0.0" });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);

const out = { revision: transport.protocolVersion, server: client.getServerVersion()?.name };
await client.ping();
out.tools = (await client.listTools()).tools.map((tool) => tool.name);
const called = await client.callTool({ name: "add_numbers", arguments: { a: 5, b: 3 } });
out.call = called.content[0].text;
out.structured = called.structuredContent;
out.progress = [];
await client.callTool({ name: "test_tool_with_progress", arguments: {} }, undefined, {
    onprogress: (step) => out.progress.push(step.progress),
});
const failed = await client.callTool({ name: "test_error_handling", arguments: {} });
out.tool_error = [failed.isError, failed.content[0].text];
try {
    const unknown = await client.callTool({ name: "no_such_tool", arguments: {} });
    out.unknown_tool = ["isError", unknown.isError];
} catch (error) {
    out.unknown_tool = error.code;
}
out.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const prompt = await client.getPrompt({
    name: "test_prompt_with_arguments",
    arguments: { arg1: "one", arg2: "two" },
});
out.prompt = prompt.messages[0].content.text;
out.resources = (await client.listResources()).resources.map((resource) => resource.uri);
out.templates = (await client.listResourceTemplates()).resourceTemplates.map((template) => template.uriTemplate);
out.resource = JSON.parse((await client.readResource({ uri: "test://template/42/data" })).contents[0].text).id;
try {
    await client.readResource({ uri: "test://nothing-here" });
} catch (error) {
    out.unknown_resource = error.code;
}
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
