// Drive a server with the official TypeScript client 2.x and print one JSON line.
// Usage: node ts_v2.mjs FOLDER_WITH_NODE_MODULES URL auto|legacy|REVISION
import { createRequire } from "node:module";
import { join } from "node:path";

const [, , folder, url, mode] = process.argv;
const require = createRequire(join(folder, "package.json"));
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
setTimeout(() => { console.error("out of time"); process.exit(3); }, 60000).unref();

const client = new Client(
    { name: "interop", version: "1.0.0" },
    {
        capabilities: { elicitation: { form: {} } },
        versionNegotiation: { mode: mode === "auto" || mode === "legacy" ? mode : { pin: mode } },
    },
);
const known = { name: "Ada", color: "teal" };
client.setRequestHandler("elicitation/create", async (request) => ({
    action: "accept",
    content: Object.fromEntries(Object.keys(request.params.requestedSchema.properties).map((key) => [key, known[key]])),
}));
await client.connect(new StreamableHTTPClientTransport(new URL(url)));

const out = { revision: client.getNegotiatedProtocolVersion(), server: client.getServerVersion()?.name };
out.tools = (await client.listTools()).tools.map((tool) => tool.name);
const called = await client.callTool({ name: "add_numbers", arguments: { a: 5, b: 3 } });
out.call = called.content[0].text;
out.structured = called.structuredContent;
out.header = (await client.callTool({ name: "test_x_mcp_header", arguments: { region: "Zürich 1" } })).content[0].text;
out.progress = [];
await client.callTool({ name: "test_tool_with_progress", arguments: {} }, {
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
if (out.revision === "2026-07-28") {
    const asked = await client.callTool({ name: "test_input_required_result_multi_round", arguments: {} });
    out.input_required = asked.content[0].text;
    const heard = new Promise((resolve, reject) => {
        setTimeout(() => reject(new Error("no notice came")), 10000).unref();
        client.setNotificationHandler("notifications/tools/list_changed", () => resolve("ToolsListChanged"));
        client.setNotificationHandler("notifications/prompts/list_changed", () => resolve("PromptsListChanged"));
    });
    const subscription = await client.listen({ toolsListChanged: true });
    await client.callTool({ name: "test_trigger_prompt_change", arguments: {} });
    await client.callTool({ name: "test_trigger_tool_change", arguments: {} });
    out.listen = { honored: subscription.honoredFilter, event: await heard };
    await subscription.close();
}
await client.close();
console.log(JSON.stringify(out));
process.exit(0);
