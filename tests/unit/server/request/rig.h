#ifndef TESTS_UNIT_SERVER_REQUEST_RIG_H
#define TESTS_UNIT_SERVER_REQUEST_RIG_H

#include "server/request/request.h"
#include "tests/unit/batcher/fake_device.h"

/* A loop with a connection whose transport does nothing but count, a real batcher, and a device
 * that the test may hold. */
struct request_rig {
    fake_device cpu;
    device *devices[1];
    model *model;
    server_options options;
    service *service;
    request_loop loop;
    request_connection *connection;
    arena memory;
    bool closes_while_sending;
    int sent, last_code, watched, kept, dropped, closed;
    size_t last_bytes;
};
extern struct request_rig rig;

void rig_begin(void);
/* Asserts that everything that was taken has come back. */
void rig_end(void);
/* A request for one row of two tokens. */
request *rig_arrive(void);
/* Waits for jobs or messages, and takes them home. */
void rig_wait_returned(void);
/* The device executes nothing until `rig.cpu.is_held` is false. */
void rig_hold_device(void);
/* Until a batch is executed. */
void rig_wait_inside(void);

#endif
