// The servers of Node: hello, and an echo; HTTP/1.1, the same over TLS, HTTP/2, the same over TLS. Tells its ports.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";

const secrets = { key: fs.readFileSync("key.pem"), cert: fs.readFileSync("cert.pem") };

function answer(request, response) {
  if (request.url === "/hello") {
    response.end("hello");
  } else {
    request.pipe(response);
  }
}

const servers = [
  http.createServer(answer),
  https.createServer(secrets, answer),
  http2.createServer(answer),
  http2.createSecureServer(secrets, answer),
];
for (const server of servers) {
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
}
for (const server of servers) {
  console.log(server.address().port);
}
