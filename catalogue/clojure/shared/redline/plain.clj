(ns redline.plain
  "GET /math/plus by a Ring handler alone: what a stack of libraries costs is its difference from this."
  (:require [clojure.string :as str])
  (:import (com.fasterxml.jackson.databind ObjectMapper)))

(set! *warn-on-reflection* true)

(def ^:private ^ObjectMapper json (ObjectMapper.))

(defn- numbers [query]
  (into {}
        (map #(let [[name value] (str/split % #"=" 2)] [name (some-> value parse-long)]))
        (str/split (or query "") #"&")))

(defn- plus [{:keys [query-string]}]
  (let [{:strs [x y]} (numbers query-string)]
    (if (and x y)
      {:status 200
       :headers {"Content-Type" "application/json; charset=utf-8"}
       :body (.writeValueAsBytes json {"total" (+ x y)})}
      {:status 400})))

(defn handler
  "A Ring handler, synchronous with one argument and asynchronous with three."
  ([{:keys [uri request-method] :as request}]
   (cond
     (not= uri "/math/plus") {:status 404}
     (not= request-method :get) {:status 405}
     :else (plus request)))
  ([request respond _raise]
   (respond (handler request))))
