package redline

import zio.http.{Response, Routes}

object Main extends ZioHttp {
  def routes(arguments: Arguments): Routes[Any, Response] = Tapir.routes(arguments)
}
