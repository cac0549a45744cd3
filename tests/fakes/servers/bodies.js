// node bodies.js PORT PORT2: says what it got in the bodies of requests, by HTTP/1.1 and by HTTP/2 without TLS.
// /form: the fields of a form. /told: how long the body is, and what the head says of it. /slow: an answer after 700 ms.
const crypto = require("node:crypto");
const http = require("node:http");
const http2 = require("node:http2");

const sha256 = bytes => crypto.createHash("sha256").update(bytes).digest("hex");

async function fieldsOf(kind, body) {
  const form = await new Response(body, { headers: { "content-type": kind } }).formData();
  const fields = {};
  for (const [name, value] of form) {
    fields[name] = typeof value === "string" ? value
      : { filename: value.name, type: value.type, sha256: sha256(Buffer.from(await value.arrayBuffer())) };
  }
  return fields;
}

function serve(request, response) {
  const pieces = [];
  request.on("data", piece => pieces.push(piece));
  request.on("end", async () => {
    const body = Buffer.concat(pieces);
    const heads = request.headers;
    const answer = text => { response.writeHead(200, { "content-length": text.length }); response.end(text); };
    try {
      if (request.url.startsWith("/slow")) setTimeout(() => answer("at last"), 700);
      else if (request.url.startsWith("/form")) answer(Buffer.from(JSON.stringify(await fieldsOf(heads["content-type"], body))));
      else answer(Buffer.from(JSON.stringify({
        bytes: body.length, sha256: sha256(body), length: heads["content-length"] ?? null,
        coding: heads["transfer-encoding"] ?? null,
      })));
    } catch (error) {
      response.writeHead(400);
      response.end(String(error));
    }
  });
}

http.createServer(serve).listen(Number(process.argv[2]), "127.0.0.1");
http2.createServer(serve).listen(Number(process.argv[3]), "127.0.0.1");
