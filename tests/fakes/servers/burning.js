// Answers after 70 units of work in one function, and 30 of the same work in another.
'use strict';
const net = require('node:net');

const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
let sink = 1;

function often(units) {
  let value = sink;
  for (let at = 0; at < units; at++) value = (Math.imul(value, 1664525) + at) | 0;
  sink = value;
}

function seldom(units) {
  let value = sink;
  for (let at = 0; at < units; at++) value = (Math.imul(value, 1664525) + at) | 0;
  sink = value + 1;
}

net.createServer((connection) => {
  let held = '';
  connection.setNoDelay(true);
  connection.on('error', () => {}); // the client has closed it
  connection.on('data', (got) => {
    held += got;
    if (!held.endsWith('\r\n\r\n')) return;
    held = '';
    often(70 * 4000);
    seldom(30 * 4000);
    connection.write(ANSWER);
  });
}).listen(Number(process.argv[2]), '127.0.0.1');
