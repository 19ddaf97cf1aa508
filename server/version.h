#ifndef SERVER_VERSION_H
#define SERVER_VERSION_H

#define PENSTOCK_VERSION "0.1.0"

#endif
