#ifndef SERVER_SERVICE_DESCRIPTORS_H
#define SERVER_SERVICE_DESCRIPTORS_H

/* How many of `connections_max` connections there are descriptors for, beside those that are open
 * and some for files: at least one. Raises the soft limit (RLIMIT_NOFILE) as far as that needs and
 * the hard limit lets. At start. */
int descriptors_for_connections(int connections_max);

#endif
