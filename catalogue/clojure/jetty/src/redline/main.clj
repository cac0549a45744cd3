(ns redline.main
  (:gen-class)
  (:require [redline.stack :as stack]
            [ring.adapter.jetty :as jetty]))

(defn -main [host port stack tuning mode]
  (jetty/run-jetty (stack/handler stack tuning)
                   {:host host
                    :port (parse-long port)
                    :async? (= mode "async")}))
