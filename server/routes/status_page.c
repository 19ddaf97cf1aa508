/* GET /: one self-contained page that reads readiness and statistics over the public routes. */
#include "server/request/respond.h"
#include "server/routes/routes.h"

/* The page is a file of its own, put into the binary by the assembler. */
__asm__(".section .rodata\n"
        "status_page_begin: .incbin \"" PENSTOCK_STATUS_PAGE "\"\n"
        "status_page_end: .byte 0\n"
        ".previous\n");
extern const char status_page_begin[], status_page_end[];

void serve_status_page(request *r)
{
    if (!request_service(r)->options->status_page) {
        respond_error(r, 404, "the status page is turned off");
        return;
    }
    respond_text(r, 200, "text/html; charset=utf-8", status_page_begin,
                 (size_t)(status_page_end - status_page_begin));
}
