(ns redline.stack
  "GET /math/plus by the study's stack: reitit routes, malli coerces, muuntaja and jsonista make the JSON."
  (:require [muuntaja.core :as muuntaja]
            [reitit.coercion.malli :as malli]
            [reitit.http :as http]
            [reitit.http.coercion :as http.coercion]
            [reitit.http.interceptors.exception :as interceptors.exception]
            [reitit.http.interceptors.muuntaja :as interceptors.muuntaja]
            [reitit.http.interceptors.parameters :as interceptors.parameters]
            [reitit.interceptor.sieppari :as sieppari]
            [reitit.ring :as ring]
            [reitit.ring.coercion :as ring.coercion]
            [reitit.ring.middleware.exception :as middleware.exception]
            [reitit.ring.middleware.muuntaja :as middleware.muuntaja]
            [reitit.ring.middleware.parameters :as middleware.parameters]))

(defn- plus
  ([{{{:keys [x y]} :query} :parameters}]
   {:status 200 :body {:total (+ x y)}})
  ([request respond _raise]
   (respond (plus request))))

(def ^:private routes
  ["/math/plus" {:get {:parameters {:query [:map [:x int?] [:y int?]]}
                       :responses {200 {:body [:map [:total int?]]}}
                       :handler plus}}])

(def ^:private middleware
  [middleware.parameters/parameters-middleware
   middleware.muuntaja/format-negotiate-middleware
   middleware.muuntaja/format-response-middleware
   middleware.exception/exception-middleware
   middleware.muuntaja/format-request-middleware
   ring.coercion/coerce-response-middleware
   ring.coercion/coerce-request-middleware])

(def ^:private interceptors
  [(interceptors.parameters/parameters-interceptor)
   (interceptors.muuntaja/format-negotiate-interceptor)
   (interceptors.muuntaja/format-response-interceptor)
   (interceptors.exception/exception-interceptor)
   (interceptors.muuntaja/format-request-interceptor)
   (http.coercion/coerce-response-interceptor)
   (http.coercion/coerce-request-interceptor)])

(defn handler
  "A Ring handler, synchronous with one argument and asynchronous with three.

  `tuning` is `study`, or names what is left as the libraries come: `inject`, reitit puts its match and its router into
  each request; `stream`, muuntaja returns a stream; `defaults`, both."
  [stack tuning]
  (let [inject? (contains? #{"inject" "defaults"} tuning)
        stream? (contains? #{"stream" "defaults"} tuning)
        data {:coercion malli/coercion
              :muuntaja (muuntaja/create (cond-> muuntaja/default-options (not stream?) (assoc :return :bytes)))}
        options {:inject-match? inject? :inject-router? inject?}
        otherwise (ring/create-default-handler)]
    (case stack
      "ring-middleware"
      (ring/ring-handler (ring/router routes {:data (assoc data :middleware middleware)}) otherwise options)

      "ring-interceptors"
      (http/ring-handler (http/router routes {:data (assoc data :interceptors interceptors)})
                         otherwise
                         (assoc options :executor sieppari/executor)))))
