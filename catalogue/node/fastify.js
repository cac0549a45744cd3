// The petstore on Fastify, with a schema for its answer, as its documentation recommends.
import Fastify from 'fastify'

import { backlog, keepAliveTimeout, serve } from './serve.js'

const pet = {
  type: 'object',
  required: ['id', 'name'],
  properties: { id: { type: 'integer' }, name: { type: 'string' }, tag: { type: 'string' } },
}

serve(async ({ host, port, protocol, key, cert }) => {
  const app = Fastify({
    keepAliveTimeout,
    http2: protocol.startsWith('h2'),
    ...(key && { https: { key, cert, allowHTTP1: true } }),
  })
  app.get('/v1/pets', { schema: { response: { 200: { type: 'array', items: pet } } } }, async () => [
    { id: 1, name: 'catten', tag: 'cat' },
    { id: 2, name: 'doggy', tag: 'dog' },
  ])
  await app.listen({ host, port, backlog })
})
