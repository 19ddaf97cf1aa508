#include "base/text/wrap.h"

#include <string.h>

#define COLUMNS_MAX 96

void wrap_print(FILE *out, const char *text, int indent)
{
    int column = indent;
    while (*text != 0) {
        int bytes = (int)strcspn(text, " \n");
        if (column > indent && column + 1 + bytes > COLUMNS_MAX) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        }
        column += fprintf(out, "%s%.*s", column > indent ? " " : "", bytes, text);
        text += bytes;
        for (; *text == ' ' || *text == '\n'; text++) {
            if (*text == '\n') {
                fprintf(out, "\n%*s", text[1] != 0 && text[1] != '\n' ? indent : 0, "");
                column = indent;
            }
        }
    }
    if (column > indent)
        fputc('\n', out);
}
