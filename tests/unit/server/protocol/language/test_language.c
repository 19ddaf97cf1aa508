/* Bodies of the routes that take text: what is read, and what is refused with which words. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/language/language.h"

static language_request request;

static status parse(route_kind kind, const char *body)
{
    language_limits l = {.items_max = 3, .bytes_max = 200, .json_depth_max = 8, .keeps_body = true};
    language_request_reset(&request, 0);
    return language_parse(&request, kind, &l, body, strlen(body));
}

static void end(void)
{
    arena_dispose(&request.memory);
    memset(&request, 0, sizeof request);
}

TestSuite(language, .fini = end);

static bool is(json_string s, const char *text)
{
    return json_string_is(s, text);
}

Test(language, openai_takes_texts_and_ids_alone_and_in_lists)
{
    static const struct {
        const char *input;
        int64_t count, ids;
    } cases[] = {{"\"a b\"", 1, 0},
                 {"[\"a\",\"b\"]", 2, 0},
                 {"[1,2,3]", 1, 3},
                 {"[[1,2],[3,4]]", 2, 2},
                 {"[\"a\",[3,4]]", 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"input\":%s,\"model\":\"m\",\"user\":\"u\",\"encoding_format\":\"base64\","
                 "\"dimensions\":64}",
                 cases[i].input);
        cr_assert_eq(parse(ROUTE_EMBEDDINGS, body), STATUS_OK, "%s", status_message());
        cr_assert_eq(request.texts.count, cases[i].count, "%s", body);
        cr_assert_eq(request.texts.items[cases[i].count - 1].id_count, cases[i].ids, "%s", body);
        cr_assert(is(request.model, "m") && request.as_base64 && request.dimensions == 64);
    }
}

Test(language, openai_says_what_is_wrong_in_its_own_terms)
{
    static const struct {
        const char *body, *code, *parameter;
    } cases[] = {
        {"{\"model\":\"m\"}", "missing_required_parameter", "input"},
        {"{\"input\":\"\"}", "empty_string", "input"},
        {"{\"input\":[]}", "empty_array", "input"},
        {"{\"input\":[\"a\",\"\"]}", "empty_string", "input[1]"},
        {"{\"input\":[[1],[]]}", "empty_array", "input[1]"},
        {"{\"input\":5}", "invalid_type", "input"},
        {"{\"input\":null}", "invalid_type", "input"},
        {"{\"input\":[true]}", "invalid_type", "input[0]"},
        {"{\"input\":\"a\",\"model\":7}", "invalid_type", "model"},
        {"{\"input\":\"a\",\"user\":7}", "invalid_type", "user"},
        {"{\"input\":\"a\",\"encoding_format\":\"hex\"}", "invalid_value", "encoding_format"},
        {"{\"input\":\"a\",\"dimensions\":0}", "integer_below_min_value", "dimensions"},
        {"{\"input\":\"a\",\"dimensions\":\"1\"}", "invalid_type", "dimensions"},
        {"{\"input\":\"a\",\"inputs\":1}", "unknown_parameter", "inputs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(parse(ROUTE_EMBEDDINGS, cases[i].body), STATUS_INVALID_ARGUMENT, "%s",
                     cases[i].body);
        cr_assert_str_eq(request.fault.code, cases[i].code, "%s", cases[i].body);
        cr_assert_str_eq(request.fault.parameter, cases[i].parameter, "%s", cases[i].body);
    }
}

Test(language, bodies_that_are_no_json_are_refused)
{
    static const char *const bodies[] = {"",
                                         "{",
                                         "[]",
                                         "{\"input\":\"a\"",
                                         "{\"input\":\"a\"}x",
                                         "{\"input\":\"\xff\"}",
                                         "{\"input\":\"\\ud800\"}",
                                         "{\"input\":\"a\",\"input\":\"b\"}",
                                         "{\"input\":[1.5]}",
                                         "{\"input\":[1.5e1x,2]}",
                                         "{\"input\":[[[1]]]}"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        cr_assert_eq(parse(ROUTE_EMBEDDINGS, bodies[i]), STATUS_INVALID_ARGUMENT, "%s", bodies[i]);
}

Test(language, openai_takes_2048_texts_and_no_more)
{
    enum { ROOM = 16384 };
    char *body = malloc(ROOM);
    for (int count = LANGUAGE_OPENAI_ITEMS_MAX; count <= LANGUAGE_OPENAI_ITEMS_MAX + 1; count++) {
        int n = snprintf(body, ROOM, "{\"input\":[");
        for (int i = 0; i < count; i++)
            n += snprintf(body + n, (size_t)(ROOM - n), "%s\"a\"", i ? "," : "");
        snprintf(body + n, (size_t)(ROOM - n), "]}");
        language_limits l = {.bytes_max = 1 << 20, .json_depth_max = 8};
        language_request_reset(&request, 0);
        status s = language_parse(&request, ROUTE_EMBEDDINGS, &l, body, strlen(body));
        cr_assert_eq(s, count == LANGUAGE_OPENAI_ITEMS_MAX ? STATUS_OK : STATUS_INVALID_ARGUMENT);
    }
    cr_assert_str_eq(request.fault.code, "array_above_max_length");
    free(body);
}

Test(language, tei_inputs_may_be_one_or_several)
{
    static const struct {
        route_kind kind;
        const char *body;
        bool is_single;
        int64_t count;
    } cases[] = {
        {ROUTE_EMBED, "{\"inputs\":\"a\"}", true, 1},
        {ROUTE_EMBED, "{\"inputs\":[\"a\",\"b\"]}", false, 2},
        {ROUTE_EMBED, "{\"inputs\":[1,2]}", true, 1},
        {ROUTE_EMBED_ALL, "{\"inputs\":[[1,2],[3]]}", false, 2},
        {ROUTE_EMBED_SPARSE, "{\"inputs\":\"a\",\"unknown\":{}}", true, 1},
        {ROUTE_PREDICT, "{\"inputs\":\"a\"}", true, 1},
        {ROUTE_PREDICT, "{\"inputs\":[\"a\"]}", true, 1},
        {ROUTE_PREDICT, "{\"inputs\":[\"a\",\"b\"]}", true, 1},
        {ROUTE_PREDICT, "{\"inputs\":[[\"a\"],[\"b\",\"c\"]]}", false, 2},
        {ROUTE_PREDICT, "{\"inputs\":{\"question\":\"a\",\"context\":\"b\"}}", true, 1},
        {ROUTE_TOKENIZE, "{\"inputs\":\"a\",\"add_special_tokens\":false}", true, 1},
        {ROUTE_DECODE, "{\"ids\":[1,2]}", false, 1},
        {ROUTE_DECODE, "{\"ids\":[[1,2],[3]],\"skip_special_tokens\":false}", false, 2},
        {ROUTE_SIMILARITY,
         "{\"inputs\":{\"sentences\":[\"b\",\"c\"],\"source_sentence\":\"a\"},"
         "\"parameters\":{\"truncate\":true}}",
         false, 3},
        {ROUTE_RERANK, "{\"query\":\"q\",\"texts\":[\"a\",\"b\"],\"return_text\":true}", false, 2},
        {ROUTE_V1_RERANK, "{\"query\":\"q\",\"documents\":[\"a\",{\"text\":\"b\"}],\"top_n\":1}",
         false, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(parse(cases[i].kind, cases[i].body), STATUS_OK, "%s: %s", cases[i].body,
                     status_message());
        cr_assert_eq(request.texts.count, cases[i].count, "%s", cases[i].body);
        cr_assert_eq(request.is_single, cases[i].is_single, "%s", cases[i].body);
    }
}

Test(language, tei_options)
{
    cr_assert_eq(parse(ROUTE_EMBED, "{\"inputs\":\"a\",\"truncate\":true,\"prompt_name\":\"query\","
                                    "\"truncation_direction\":\"Left\",\"normalize\":false}"),
                 STATUS_OK);
    cr_assert(request.options.truncates && request.options.cuts_left && !request.normalizes);
    cr_assert(is(request.options.prompt, "query"));
    cr_assert_eq(parse(ROUTE_EMBED, "{\"inputs\":\"a\",\"truncate\":null,\"prompt_name\":null}"),
                 STATUS_OK);
    cr_assert(!request.options.truncates && request.normalizes);
    cr_assert_null(request.options.prompt.text);
}

Test(language, the_source_of_a_similarity_is_first_and_a_query_goes_with_each_text)
{
    cr_assert_eq(
        parse(ROUTE_SIMILARITY, "{\"inputs\":{\"sentences\":[\"b\"],\"source_sentence\":\"a\"}}"),
        STATUS_OK);
    cr_assert(is(request.texts.items[0].text, "a") && is(request.texts.items[1].text, "b"));
    cr_assert_eq(parse(ROUTE_RERANK, "{\"texts\":[\"a\",\"b\"],\"query\":\"q\"}"), STATUS_OK);
    cr_assert(is(request.texts.items[1].text, "q") && is(request.texts.items[1].pair, "b"));
    cr_assert_eq(request.texts.bytes, 4);
}

Test(language, tei_refuses)
{
    static const struct {
        route_kind kind;
        const char *body;
        status wanted;
        bool is_empty;
    } cases[] = {
        {ROUTE_EMBED, "{}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_EMBED, "{\"inputs\":\"\"}", STATUS_INVALID_ARGUMENT, true},
        {ROUTE_EMBED, "{\"inputs\":[]}", STATUS_INVALID_ARGUMENT, true},
        {ROUTE_EMBED, "{\"inputs\":[\"a\",\"\"]}", STATUS_INVALID_ARGUMENT, true},
        {ROUTE_EMBED, "{\"inputs\":7}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_EMBED, "{\"inputs\":[\"a\",\"a\",\"a\",\"a\"]}", STATUS_TOO_LARGE, false},
        {ROUTE_EMBED, "{\"inputs\":\"a\",\"truncate\":1}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_EMBED, "{\"inputs\":\"a\",\"truncation_direction\":\"up\"}", STATUS_INVALID_ARGUMENT,
         false},
        {ROUTE_PREDICT, "{\"inputs\":[\"a\",\"b\",\"c\"]}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_PREDICT, "{\"inputs\":[[\"a\"],\"b\"]}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_TOKENIZE, "{\"inputs\":[1,2]}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_DECODE, "{\"ids\":\"a\"}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_SIMILARITY, "{\"inputs\":{\"sentences\":[\"b\"]}}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_SIMILARITY, "{\"inputs\":{\"sentences\":[],\"source_sentence\":\"a\"}}",
         STATUS_INVALID_ARGUMENT, true},
        {ROUTE_RERANK, "{\"texts\":[\"a\"]}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_RERANK, "{\"query\":\"q\",\"texts\":[]}", STATUS_INVALID_ARGUMENT, true},
        {ROUTE_V1_RERANK, "{\"query\":\"q\"}", STATUS_INVALID_ARGUMENT, false},
        {ROUTE_V1_RERANK, "{\"query\":\"q\",\"documents\":[{}]}", STATUS_INVALID_ARGUMENT, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert_eq(parse(cases[i].kind, cases[i].body), cases[i].wanted, "%s", cases[i].body);
        cr_assert_eq(request.fault.code != NULL, cases[i].is_empty, "%s", cases[i].body);
    }
}

Test(language, the_query_of_a_rerank_counts_with_each_text)
{
    char body[300];
    snprintf(body, sizeof body, "{\"query\":\"%0100d\",\"texts\":[\"a\"]}", 0);
    cr_assert_eq(parse(ROUTE_RERANK, body), STATUS_OK);
    snprintf(body, sizeof body, "{\"query\":\"%0100d\",\"texts\":[\"a\",\"b\"]}", 0);
    cr_assert_eq(parse(ROUTE_RERANK, body), STATUS_TOO_LARGE);
}

/* The bodies end early: what is too much is refused before that is seen. */
Test(language, too_much_text_is_refused_while_it_is_read)
{
    static const char text[] = "\"0123456789012345678901234567890123456789"
                               "0123456789012345678901234567890123456789\",";
    char body[1000] = "{\"input\":[1";
    for (int i = 0; i < 60; i++)
        strcat(body, ",1");
    cr_assert_eq(parse(ROUTE_EMBEDDINGS, body), STATUS_TOO_LARGE, "%s", status_message());
    strcpy(body, "{\"input\":[");
    for (int i = 0; i < 3; i++)
        strcat(body, text);
    cr_assert_eq(parse(ROUTE_EMBEDDINGS, body), STATUS_TOO_LARGE, "%s", status_message());
}
