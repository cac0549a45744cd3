// The petstore on Node's own servers: node:http, node:https and node:http2. WebSockets are those of the package ws, which
// compresses messages for clients that offer it.
import { createServer } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'

import { WebSocketServer } from 'ws'

import { backlog, keepAliveTimeout, serve } from './serve.js'

function handle(request, response) {
  if (request.method !== 'GET' || request.url !== '/v1/pets') {
    response.statusCode = 404
    response.end()
    return
  }
  const pets = [{ id: 1, name: 'catten', tag: 'cat' }, { id: 2, name: 'doggy', tag: 'dog' }]
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(pets))
}

const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: true })

function echo(socket) {
  socket.on('message', (message, binary) => socket.send(message, { binary }))
}

// The time since 1970 in ns, every 100 ms, to the millisecond: what Node has that is finer is some ms off the clock.
function push(socket) {
  const timer = setInterval(() => socket.send(`${Date.now()}000000`), 100)
  socket.on('close', () => clearInterval(timer))
}

const paths = { '/ws/echo': echo, '/ws/ts': push }

function upgrade(request, socket, head) {
  const serves = paths[request.url]
  if (serves === undefined) {
    socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n')
    return
  }
  sockets.handleUpgrade(request, socket, head, (opened) => {
    opened.on('error', () => opened.terminate())
    serves(opened)
  })
}

const servers = {
  h1: () => createServer({ keepAliveTimeout }, handle),
  'h1+tls': (tls) => createTlsServer({ ...tls, keepAliveTimeout }, handle),
  h2c: () => createHttp2Server(handle),
  'h2+tls': (tls) => createSecureServer({ ...tls, allowHTTP1: true }, handle),
}

serve(({ host, port, protocol, key, cert }) => {
  const server = servers[protocol]({ key, cert })
  if (protocol.startsWith('h1')) server.on('upgrade', upgrade)
  server.listen({ host, port, backlog })
})
