(ns redline.main
  (:gen-class)
  (:require [redline.plain :as plain]
            [redline.undertow :as undertow]))

(defn -main [host port mode]
  (undertow/start plain/handler host (parse-long port) mode))
