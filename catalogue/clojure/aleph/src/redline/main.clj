(ns redline.main
  (:gen-class)
  (:require [aleph.http :as aleph]
            [redline.stack :as stack])
  (:import (java.net InetSocketAddress)))

(defn -main [host port stack tuning mode]
  (let [handler (stack/handler stack tuning)]
    (aleph/start-server (case mode
                          "sync" handler
                          "async" (aleph/wrap-ring-async-handler handler))
                        {:socket-address (InetSocketAddress. ^String host (int (parse-long port)))
                         :transport :epoll})))
