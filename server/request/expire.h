#ifndef SERVER_REQUEST_EXPIRE_H
#define SERVER_REQUEST_EXPIRE_H

#include "server/request/loop.h"

/* Ends the requests whose deadline has passed at `now_ns`, with 504, and resumes those that waited
 * for that time (request_due). On the loop's thread, every
 * few milliseconds while there are deadlines. */
void request_expire(request_loop *l, uint64_t now_ns);

#endif
