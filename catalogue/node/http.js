// The petstore on Node's own servers: node:http, node:https and node:http2.
import { createServer } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'

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

const servers = {
  h1: () => createServer({ keepAliveTimeout }, handle),
  'h1+tls': (tls) => createTlsServer({ ...tls, keepAliveTimeout }, handle),
  h2c: () => createHttp2Server(handle),
  'h2+tls': (tls) => createSecureServer({ ...tls, allowHTTP1: true }, handle),
}

serve(({ host, port, protocol, key, cert }) => servers[protocol]({ key, cert }).listen({ host, port, backlog }))
