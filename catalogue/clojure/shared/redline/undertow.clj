(ns redline.undertow
  "A Ring adapter for Undertow, with what the servers here need of Ring."
  (:require [clojure.java.io :as io]
            [clojure.string :as str])
  (:import (io.undertow Undertow)
           (io.undertow.server HttpHandler HttpServerExchange)
           (io.undertow.server.handlers BlockingHandler)
           (io.undertow.util HeaderMap HeaderValues HttpString SameThreadExecutor)
           (java.io InputStream)
           (java.nio ByteBuffer)))

(set! *warn-on-reflection* true)

(defn- headers [^HeaderMap sent]
  (persistent!
   (reduce (fn [read ^HeaderValues values]
             (assoc! read
                     (str/lower-case (.getHeaderName values))
                     (if (= 1 (.size values)) (.getFirst values) (str/join "," values))))
           (transient {})
           sent)))

(defn- request [^HttpServerExchange exchange]
  {:server-port (.getHostPort exchange)
   :server-name (.getHostName exchange)
   :remote-addr (.. exchange getSourceAddress getAddress getHostAddress)
   :uri (.getRequestURI exchange)
   :query-string (not-empty (.getQueryString exchange))
   :scheme (keyword (.getRequestScheme exchange))
   :request-method (keyword (str/lower-case (.getRequestMethod exchange)))
   :protocol (str (.getProtocol exchange))
   :headers (headers (.getRequestHeaders exchange))
   :body (when (.isBlocking exchange) (.getInputStream exchange))})

(defprotocol Body
  (send-body [body exchange]))

(extend-protocol Body
  byte/1
  (send-body [body ^HttpServerExchange exchange]
    (.send (.getResponseSender exchange) (ByteBuffer/wrap body)))

  String
  (send-body [body ^HttpServerExchange exchange]
    (.send (.getResponseSender exchange) ^String body))

  InputStream
  (send-body [body ^HttpServerExchange exchange]
    (if (.isInIoThread exchange)
      (.dispatch exchange ^Runnable (fn [] (send-body body exchange)))
      (with-open [body body]
        (.startBlocking exchange)
        (io/copy body (.getOutputStream exchange))
        (.endExchange exchange))))

  nil
  (send-body [_ ^HttpServerExchange exchange]
    (.endExchange exchange)))

(defn- respond [^HttpServerExchange exchange {:keys [status headers body]}]
  (.setStatusCode exchange status)
  (let [sent (.getResponseHeaders exchange)]
    (doseq [[name value] headers]
      (.put sent (HttpString. ^String name) ^String value)))
  (send-body body exchange))

(defn- raise [^HttpServerExchange exchange ^Throwable problem]
  (.printStackTrace problem)
  (.setStatusCode exchange 500)
  (.endExchange exchange))

(defn- on-a-worker
  "Calls a synchronous handler on a thread of the worker pool, which it may block."
  [handler]
  (BlockingHandler.
   (reify HttpHandler
     (handleRequest [_ exchange]
       (respond exchange (handler (request exchange)))))))

(defn- on-the-io-thread
  "Calls an asynchronous handler on the thread that read the request."
  [handler]
  (reify HttpHandler
    (handleRequest [_ exchange]
      (.dispatch exchange
                 SameThreadExecutor/INSTANCE
                 ^Runnable (fn []
                             (try
                               (handler (request exchange) #(respond exchange %) #(raise exchange %))
                               (catch Throwable problem
                                 (raise exchange problem))))))))

(defn start
  "Serves a Ring handler: synchronous in mode `sync`, asynchronous in mode `async`."
  [handler host port mode]
  (-> (Undertow/builder)
      (.addHttpListener port host)
      (.setHandler (case mode
                     "sync" (on-a-worker handler)
                     "async" (on-the-io-thread handler)))
      (.build)
      (.start)))
