// Loaded before the conformance suite: a server that names no host listens on 127.0.0.1 instead of everywhere.
import net from "node:net";

const listen = net.Server.prototype.listen;
const EVERYWHERE = new Set([undefined, null, "", "0.0.0.0", "::"]);

net.Server.prototype.listen = function (first, ...rest) {
    if (first !== null && typeof first === "object" && "port" in first && EVERYWHERE.has(first.host)) {
        return listen.call(this, { ...first, host: "127.0.0.1" }, ...rest);
    }
    if (typeof first === "number" || (typeof first === "string" && /^\d+$/.test(first))) {
        const named = typeof rest[0] === "string";
        if (!named || EVERYWHERE.has(rest[0])) {
            return listen.call(this, first, "127.0.0.1", ...(named ? rest.slice(1) : rest));
        }
    }
    return listen.call(this, first, ...rest);
};
