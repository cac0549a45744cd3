(ns redline.main
  (:gen-class)
  (:require [pohjavirta.server :as pohjavirta]
            [redline.stack :as stack]))

(defn -main [host port stack tuning _mode]
  (-> (stack/handler stack tuning)
      (pohjavirta/create {:host host :port (parse-long port)})
      (pohjavirta/start)))
