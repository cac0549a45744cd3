// The petstore on Go's net/http, with its ServeMux and its own TLS and HTTP/2, and WebSockets by coder/websocket.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

type pet struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
	Tag  string `json:"tag"`
}

func pets(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal([]pet{{1, "catten", "cat"}, {2, "doggy", "dog"}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client may be gone, which concerns nobody else
}

func echo(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer socket.CloseNow()
	for {
		kind, message, err := socket.Read(r.Context())
		if err != nil || socket.Write(r.Context(), kind, message) != nil {
			return // the client has left
		}
	}
}

// The time since 1970 in ns, every 100 ms, until the client leaves.
func push(w http.ResponseWriter, r *http.Request) {
	socket, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer socket.CloseNow()
	left := socket.CloseRead(r.Context())
	due := time.NewTicker(100 * time.Millisecond)
	defer due.Stop()
	for {
		select {
		case <-left.Done():
			return
		case <-due.C:
			if socket.Write(left, websocket.MessageText, strconv.AppendInt(nil, time.Now().UnixNano(), 10)) != nil {
				return
			}
		}
	}
}

// What a server with this protocol accepts: HTTP/1.1 always, and HTTP/2 if it is the protocol.
func protocols(name string) *http.Protocols {
	accepted := new(http.Protocols)
	accepted.SetHTTP1(true)
	accepted.SetHTTP2(name == "h2+tls")
	accepted.SetUnencryptedHTTP2(name == "h2c")
	return accepted
}

func main() {
	address := flag.String("address", "127.0.0.1:8080", "where to listen")
	protocol := flag.String("protocol", "h1", "h1, h1+tls, h2c or h2+tls")
	certificate := flag.String("certificate", "", "PEM file, for TLS")
	key := flag.String("key", "", "PEM file, for TLS")
	flag.Parse()

	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", pets)
	mux.HandleFunc("GET /ws/echo", echo)
	mux.HandleFunc("GET /ws/ts", push)
	server := &http.Server{Addr: *address, Handler: mux, Protocols: protocols(*protocol)}
	if *protocol == "h1+tls" || *protocol == "h2+tls" {
		log.Fatal(server.ListenAndServeTLS(*certificate, *key))
	}
	log.Fatal(server.ListenAndServe())
}
