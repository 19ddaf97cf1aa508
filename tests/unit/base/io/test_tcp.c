#include "base/io/tcp.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* A bound socket on 127.0.0.1, and its port. */
static int bind_somewhere(char port[8])
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&to, bytes), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&to, &bytes), 0);
    snprintf(port, 8, "%d", ntohs(to.sin_port));
    return fd;
}

Test(tcp, connects_with_the_limit_and_names_who_does_not_answer)
{
    char port[8], wanted[40];
    int listener = bind_somewhere(port), fd = -1;
    struct timeval limit;
    socklen_t bytes = sizeof limit;
    cr_assert_eq(tcp_connect("127.0.0.1", port, 3, &fd), STATUS_UNAVAILABLE);
    snprintf(wanted, sizeof wanted, "127.0.0.1:%s: ", port);
    cr_assert_eq(strncmp(status_message(), wanted, strlen(wanted)), 0, "%s", status_message());
    cr_assert_eq(fd, -1);
    cr_assert_eq(listen(listener, 1), 0);
    cr_assert_eq(tcp_connect("localhost", port, 3, &fd), STATUS_OK, "%s", status_message());
    cr_assert_eq(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &bytes), 0);
    cr_assert_eq(limit.tv_sec, 3);
    close(fd);
    close(listener);
}
