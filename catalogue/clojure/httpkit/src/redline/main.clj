(ns redline.main
  (:gen-class)
  (:require [org.httpkit.server :as httpkit]
            [redline.stack :as stack]))

(defn -main [host port stack tuning mode]
  (httpkit/run-server (stack/handler stack tuning)
                      {:ip host
                       :port (parse-long port)
                       :ring-async? (= mode "async")}))
