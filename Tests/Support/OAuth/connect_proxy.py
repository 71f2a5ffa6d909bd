"""A proxy that opens a tunnel to this machine for every host (CONNECT, RFC 9110 section 9.3.6)."""

import socket
import socketserver
import threading


class ConnectProxy(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Tunnel)
        self.requests = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def port(self):
        return self.server_address[1]


class Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        method, target, _ = self.rfile.readline().decode().split()
        authorization = ""
        while header := self.rfile.readline().decode().strip():
            name, _, value = header.partition(":")
            if name.lower() == "proxy-authorization":
                authorization = value.strip()
        self.server.requests.append({"method": method, "target": target, "authorization": authorization})
        # The client waits for the answer, so nothing else is in the buffer.
        with socket.create_connection(("127.0.0.1", int(target.rsplit(":", 1)[1]))) as server:
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=forward, args=(server, self.connection), daemon=True)
            back.start()
            forward(self.connection, server)
            back.join()


def forward(source, target):
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
