#include "models/repository/commands.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one name: one model's orders do not fill the queue of all. */
#define OF_NAME_MAX 2

/* The last one of that name, and how many there are. */
static repository_command *find_last(repository_commands *c, const char *name, int *count)
{
    repository_command *last = NULL;
    *count = 0;
    for (repository_command *i = c->first; i != NULL; i = i->next) {
        if (strcmp(i->name, name) == 0) {
            last = i;
            ++*count;
        }
    }
    return last;
}

static bool is_same(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static void free_command(repository_command *c)
{
    free(c->config);
    free(c);
}

static status append(repository_commands *c, bool is_load, const char *name, const char *config,
                     int of_name, repository_command **out)
{
    if (of_name >= OF_NAME_MAX)
        return status_fail(STATUS_RESOURCE_EXHAUSTED,
                           "%d loads and unloads of \"%s\" wait already, as many as may", of_name,
                           name);
    if (c->count >= c->count_max)
        return status_fail(STATUS_RESOURCE_EXHAUSTED,
                           "%d loads and unloads wait already, as many as may", c->count);
    repository_command *added = calloc(1, sizeof *added);
    if (added != NULL && config != NULL && (added->config = strdup(config)) == NULL) {
        free(added);
        added = NULL;
    }
    if (added == NULL)
        return status_fail(STATUS_OUT_OF_MEMORY, "no memory for a load");
    added->is_load = is_load;
    snprintf(added->name, sizeof added->name, "%s", name);
    if (c->last != NULL)
        c->last->next = added;
    else
        c->first = added;
    c->last = added;
    c->count++;
    *out = added;
    return STATUS_OK;
}

status repository_commands_add(repository_commands *c, bool is_load, const char *name,
                               const char *config, repository_order *o)
{
    int of_name;
    repository_command *wanted = find_last(c, name, &of_name);
    if (strlen(name) >= sizeof wanted->name)
        return status_fail(STATUS_NOT_FOUND, "no model of that name");
    if (wanted == NULL || wanted->is_load != is_load || !is_same(wanted->config, config)) {
        status failure = append(c, is_load, name, config, of_name, &wanted);
        if (failure)
            return failure;
    }
    o->command = wanted;
    o->next = wanted->orders;
    o->at = &wanted->orders;
    if (o->next != NULL)
        o->next->at = &o->next;
    wanted->orders = o;
    return STATUS_OK;
}

const repository_command *repository_commands_begin(repository_commands *c)
{
    assert(c->running == NULL);
    repository_command *first = c->first;
    if (first == NULL)
        return NULL;
    c->first = first->next;
    if (c->first == NULL)
        c->last = NULL;
    c->count--;
    c->running = first;
    return first;
}

repository_order *repository_commands_finish(repository_commands *c)
{
    repository_order *orders = c->running->orders;
    for (repository_order *o = orders; o != NULL; o = o->next)
        o->command = NULL;
    free_command(c->running);
    c->running = NULL;
    return orders;
}

static void remove_waiting(repository_commands *c, repository_command *gone)
{
    repository_command *before = NULL;
    for (repository_command *i = c->first; i != gone; i = i->next)
        before = i;
    if (before != NULL)
        before->next = gone->next;
    else
        c->first = gone->next;
    if (c->last == gone)
        c->last = before;
    c->count--;
    free_command(gone);
}

bool repository_commands_cancel(repository_commands *c, repository_order *o,
                                bool *is_running_unwanted)
{
    repository_command *from = o->command;
    *is_running_unwanted = false;
    if (from == NULL)
        return false;
    *o->at = o->next; /* without a search: very many may share a command */
    if (o->next != NULL)
        o->next->at = o->at;
    o->command = NULL;
    if (from->orders != NULL)
        return true;
    if (from == c->running)
        *is_running_unwanted = true;
    else
        remove_waiting(c, from);
    return true;
}
