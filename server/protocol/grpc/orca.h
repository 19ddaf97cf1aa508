#ifndef SERVER_PROTOCOL_GRPC_ORCA_H
#define SERVER_PROTOCOL_GRPC_ORCA_H

#include <stddef.h>
#include <stdint.h>

/* Load reports beside the calls that cause the load (xds.service.orca.v3). Pure. */

#define ORCA_INTERVAL_NS_MIN UINT64_C(1000000000)
#define ORCA_INTERVAL_NS_MAX UINT64_C(3600000000000)

/* The `report_interval` of an OrcaLoadReportRequest, within those bounds; the smallest one where it
 * is absent or the message is broken, which who parses the message says. */
uint64_t orca_read_interval(const char *message, size_t bytes);

#endif
