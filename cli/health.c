/* `penstock health`: is the server of this container live? For health checks of images without a
 * shell or curl. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/flags.h"

#define TIMEOUT_S 3
#define DEFAULT_PORT 8080

static int fail(const char *what)
{
    fprintf(stderr, "penstock health: %s\n", what);
    return 1;
}

/* The port that the environment gives the server (config/load.c), the strongest last. */
static long port_of_environment(void)
{
    static const char *const names[] = {"PORT", "SAGEMAKER_BIND_TO_PORT", "AIP_HTTP_PORT"};
    long port = DEFAULT_PORT;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text != NULL && text[0] != 0)
            port = strtol(text, NULL, 10);
    }
    return port;
}

/* Reads the status line at least. */
static bool ask(int fd, const char *path, char *answer, size_t bytes)
{
    char head[256];
    int n = snprintf(head, sizeof head, "GET %s HTTP/1.0\r\nHost: localhost\r\n\r\n", path);
    size_t done = 0;
    if (n >= (int)sizeof head || send(fd, head, (size_t)n, MSG_NOSIGNAL) != n)
        return false;
    while (done < bytes - 1 && memchr(answer, '\n', done) == NULL) {
        ssize_t got = recv(fd, answer + done, bytes - 1 - done, 0);
        if (got <= 0)
            return false;
        done += (size_t)got;
    }
    answer[done] = 0;
    return true;
}

static int check(int port, const char *path)
{
    char answer[512] = "";
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail("no socket");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    bool has_answer =
        connect(fd, (struct sockaddr *)&to, sizeof to) == 0 && ask(fd, path, answer, sizeof answer);
    close(fd);
    if (!has_answer)
        return fail("no answer");
    answer[strcspn(answer, "\r\n")] = 0;
    return strstr(answer, " 200") != NULL ? 0 : fail(answer);
}

int command_health(int argc, char **argv)
{
    int port = (int)port_of_environment();
    bool is_ready = false;
    const flag flags[] = {
        flag_integer("--port", "N", "Port on 127.0.0.1. Default: that of the environment, or 8080.",
                     &port, 1, 65535),
        flag_switch("--ready", "Ask whether it is ready, not only live.", &is_ready),
    };
    const flags_usage usage = {
        .command = "health",
        .synopsis = "[OPTION...]",
        .description = "Asks the server on this machine whether it is live: exit code 0, else 1. "
                       "PORT, SAGEMAKER_BIND_TO_PORT and AIP_HTTP_PORT say where it listens, as "
                       "for penstock serve.",
        .flags = flags,
        .count = sizeof flags / sizeof *flags};
    int code = flags_parse(&usage, argc, argv);
    if (code != FLAGS_OK)
        return code;
    return check(port, is_ready ? "/v2/health/ready" : "/v2/health/live");
}
