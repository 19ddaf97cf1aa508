#include "base/text/replace.h"

#include <assert.h>
#include <string.h>

void text_replace(char *text, size_t capacity, const char *what, const char *with)
{
    size_t what_bytes = strlen(what), with_bytes = strlen(with), bytes = strlen(text);
    assert(what_bytes > 0 && bytes < capacity);
    for (char *at = text; (at = strstr(at, what)) != NULL;) {
        size_t room = capacity - 1 - (size_t)(at - text); /* from here to the zero byte */
        size_t put = with_bytes < room ? with_bytes : room;
        size_t rest = bytes - (size_t)(at - text) - what_bytes;
        size_t kept = rest < room - put ? rest : room - put;
        memmove(at + put, at + what_bytes, kept);
        memcpy(at, with, put);
        at += put;
        at[kept] = 0;
        bytes = (size_t)(at - text) + kept;
    }
}
