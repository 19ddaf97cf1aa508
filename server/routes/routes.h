#ifndef SERVER_ROUTES_ROUTES_H
#define SERVER_ROUTES_ROUTES_H

#include "server/request/routes.h"

/* The handlers. Each answers the request, at once or later. */
void serve_unknown(request *r);
void serve_status_page(request *r);
/* Liveness, readiness of the server and of a model. */
void serve_health(request *r);
/* 503 with what the start is doing. */
void serve_starting(request *r);
/* KServe: the server's, a model's metadata and configuration. */
void serve_metadata(request *r);
void serve_stats(request *r);
/* TensorFlow Serving: a model's state and signature. */
void serve_tensorflow_metadata(request *r);
/* :classify and :regress, which no model has. */
void serve_other_signature(request *r);
/* Which models there are, as OpenAI has it; what text-embeddings-inference says of itself. */
void serve_models(request *r);
void serve_text_info(request *r);
void serve_text_health(request *r);
/* The models of an endpoint of many, as SageMaker has it. */
void serve_multi_models(request *r);
/* What all routes are, as OpenAPI. */
void serve_openapi(request *r);
/* The repository's index, load and unload. */
void serve_repository(request *r);

/* A profile of an accelerator, by its plugin's profiler. */
void serve_profile(request *r);

/* Regions of memory that clients share. */
void serve_shared_memory(request *r);

/* Which handler answers which route. Static. */
const request_routes *routes_table(void);
/* The same where only health and metrics are served. */
const request_routes *routes_health_table(void);

#endif
