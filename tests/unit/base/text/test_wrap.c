#include "base/text/wrap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *wrapped(const char *text, int indent)
{
    char *out = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&out, &bytes);
    fprintf(file, "%*s", indent, "");
    wrap_print(file, text, indent);
    fclose(file);
    return out;
}

Test(wrap, lines_are_at_most_96_columns_and_indented)
{
    char text[400] = "";
    for (int i = 0; i < 60; i++)
        strcat(text, i % 2 ? "abcde " : "fgh ");
    char *out = wrapped(text, 10);
    int lines = 0, words = 0;
    for (char *line = strtok(out, "\n"); line != NULL; line = strtok(NULL, "\n"), lines++) {
        cr_expect_leq(strlen(line), 96);
        cr_expect_eq(strspn(line, " "), 10);
        for (char *at = line; (at = strpbrk(at, "af")) != NULL; at++)
            words++;
    }
    cr_expect_eq(words, 60);
    cr_expect_eq(lines, 4);
    free(out);
}

Test(wrap, newlines_in_the_text_stay)
{
    char *out = wrapped("one two\n\nthree", 2);
    cr_expect_str_eq(out, "  one two\n\n  three\n");
    free(out);
    out = wrapped("one\n", 0);
    cr_expect_str_eq(out, "one\n");
    free(out);
}
