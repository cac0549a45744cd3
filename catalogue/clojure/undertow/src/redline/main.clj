(ns redline.main
  (:gen-class)
  (:require [redline.stack :as stack]
            [redline.undertow :as undertow]))

(defn -main [host port stack tuning mode]
  (undertow/start (stack/handler stack tuning) host (parse-long port) mode))
