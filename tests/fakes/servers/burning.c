/* Answers after 70 units of work in one function, and 30 of the same work in another. A thread serves a connection. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile unsigned long sink;

__attribute__((noinline, noclone)) void often(int units) {
    unsigned long value = sink;
    for (int at = 0; at < units; at++) value = value * 6364136223846793005UL + at;
    sink = value;
}

__attribute__((noinline, noclone)) void seldom(int units) {
    unsigned long value = sink;
    for (int at = 0; at < units; at++) value = value * 6364136223846793005UL + at;
    sink = value + 1;
}

static void *serve(void *argument) {
    static const char answer[] = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    int connection = (int)(long)argument;
    char request[8192];
    size_t held = 0;
    for (ssize_t got; (got = read(connection, request + held, sizeof request - 1 - held)) > 0;) {
        held += (size_t)got;
        request[held] = 0;
        if (strstr(request, "\r\n\r\n") == NULL) continue;
        held = 0;
        often(70 * 4000);
        seldom(30 * 4000);
        if (write(connection, answer, sizeof answer - 1) < 0) break;
    }
    close(connection);
    return NULL;
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(arguments[count - 1]))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listening = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(listening, (struct sockaddr *)&address, sizeof address) || listen(listening, 64)) return 1;
    for (;;) {
        pthread_t thread;
        long connection = accept(listening, NULL, NULL);
        if (connection >= 0 && !pthread_create(&thread, NULL, serve, (void *)connection)) pthread_detach(thread);
    }
}
