/* Apart from scan.c: jansson's names and ours do not fit in one file. */
#include <jansson.h>

#include "bench/json/with_jansson.h"

void with_jansson(const char *text, size_t bytes, float *out)
{
    json_error_t error;
    json_t *root = json_loadb(text, bytes, 0, &error);
    for (size_t i = 0; i < json_array_size(root); i++)
        out[i] = (float)json_real_value(json_array_get(root, i));
    json_decref(root);
}
