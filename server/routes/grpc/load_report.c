/* xds.service.orca.v3.OpenRcaService: load reports beside the calls that cause the load. */
#include "base/clock.h"
#include "server/protocol/grpc/call.h"
#include "server/request/respond.h"
#include "server/routes/grpc/methods.h"

/* Asked again at the client's interval (server/http2/call.c). */
void method_load_report(request *r, const ProtobufCMessage *in, arena *memory)
{
    static const char head[GRPC_FRAME_HEAD_BYTES];
    text_buffer out = {0};
    (void)in, (void)memory;
    text_buffer_append(&out, head, sizeof head);
    endpoint_load_write_message(&r->loop->load, request_service(r), clock_now_ns(), &out);
    respond_grpc(r, &out);
    text_buffer_dispose(&out);
}
