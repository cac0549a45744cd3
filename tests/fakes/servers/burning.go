// Answers after 70 units of work in one function, and 30 of the same work in another. A goroutine serves a connection.
package main

import (
	"bytes"
	"net"
	"os"
)

var answer = []byte("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")

//go:noinline
func often(value uint64, units int) uint64 {
	for at := 0; at < units; at++ {
		value = value*6364136223846793005 + uint64(at)
	}
	return value
}

//go:noinline
func seldom(value uint64, units int) uint64 {
	for at := 0; at < units; at++ {
		value = value*6364136223846793005 + uint64(at)
	}
	return value + 1
}

func serve(connection net.Conn) {
	defer connection.Close()
	request, held, value := make([]byte, 8192), 0, uint64(1)
	for {
		got, err := connection.Read(request[held:])
		if err != nil {
			return
		}
		held += got
		if !bytes.HasSuffix(request[:held], []byte("\r\n\r\n")) {
			continue
		}
		held = 0
		value = seldom(often(value, 70*4000), 30*4000)
		if _, err := connection.Write(answer); err != nil || value == 0 {
			return
		}
	}
}

func main() {
	listening, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	for {
		connection, err := listening.Accept()
		if err != nil {
			panic(err)
		}
		go serve(connection)
	}
}
