#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>

/* A lock-free box of messages: any thread posts, one thread at a time takes everything.
 * Nodes are embedded in the messages, so posting allocates nothing and cannot fail. */
typedef struct mailbox_node {
    struct mailbox_node *next;
} mailbox_node;

typedef struct mailbox {
    _Atomic(mailbox_node *) newest;
} mailbox;

void mailbox_init(mailbox *box);

/* Hands `node` over to the box until it is taken. True when the box was empty: the caller then
 * wakes the taker. */
bool mailbox_post(mailbox *box, mailbox_node *node);

/* Empties the box; returns the oldest message, linked by `next` to younger ones, or NULL. */
mailbox_node *mailbox_take_all(mailbox *box);

bool mailbox_is_empty(const mailbox *box);

#endif
