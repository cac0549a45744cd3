// What both servers share: their command line, one worker per core, and what TLS needs.
import cluster from 'node:cluster'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'

// Longer than any proxy keeps an idle connection, so that the proxy is the one that closes it.
export const keepAliveTimeout = 75_000

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string' },
    protocol: { type: 'string', default: 'h1' },
    tls: { type: 'string' },
    workers: { type: 'string', default: '1' },
  },
})

// How many connections may wait to be accepted. A proxy may open one for each of thousands of requests at once.
export const backlog = 4096

// Calls start({ host, port, protocol, key, cert }) in every worker process; with one worker, in this process.
export function serve(start) {
  const workers = Number(values.workers)
  if (cluster.isPrimary && workers > 1) {
    for (let n = 0; n < workers; n++) cluster.fork()
    cluster.on('exit', (_, code) => process.exit(code || 1))
    return
  }
  const options = { host: values.host, port: Number(values.port), protocol: values.protocol }
  if (values.protocol.endsWith('+tls')) {
    options.key = readFileSync(`${values.tls}/server.key`)
    options.cert = readFileSync(`${values.tls}/server.pem`)
  }
  start(options)
}
