(ns redline.main
  "A Ring adapter for Jetty alone, without servlets, around the plain handler."
  (:gen-class)
  (:require [clojure.string :as str]
            [redline.plain :as plain])
  (:import (java.net InetSocketAddress)
           (java.nio ByteBuffer)
           (org.eclipse.jetty.http HttpField)
           (org.eclipse.jetty.server Handler$Abstract Request Response Server)
           (org.eclipse.jetty.util Callback)))

(set! *warn-on-reflection* true)

(defn- ring-request [^Request request]
  (let [uri (.getHttpURI request)]
    {:server-port (Request/getServerPort request)
     :server-name (Request/getServerName request)
     :remote-addr (Request/getRemoteAddr request)
     :uri (.getPath uri)
     :query-string (.getQuery uri)
     :scheme (keyword (.getScheme uri))
     :request-method (keyword (str/lower-case (.getMethod request)))
     :protocol (.. request getConnectionMetaData getProtocol)
     :headers (persistent!
               (reduce (fn [read ^HttpField field]
                         (assoc! read (.getLowerCaseName field) (.getValue field)))
                       (transient {})
                       (.getHeaders request)))}))

(defn- respond [^Response response ^Callback done {:keys [status headers ^bytes body]}]
  (.setStatus response status)
  (let [sent (.getHeaders response)]
    (doseq [[name value] headers]
      (.put sent ^String name ^String value)))
  (.write response true (ByteBuffer/wrap (or body (byte-array 0))) done))

(defn- serving [handler mode]
  (proxy [Handler$Abstract] []
    (handle [request response ^Callback done]
      (case mode
        "sync" (respond response done (handler (ring-request request)))
        "async" (handler (ring-request request)
                         #(respond response done %)
                         #(.failed done ^Throwable %)))
      true)))

(defn -main [host port mode]
  (doto (Server. (InetSocketAddress. ^String host (int (parse-long port))))
    (.setHandler ^Handler$Abstract (serving plain/handler mode))
    (.start)))
