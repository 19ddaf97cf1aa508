#ifndef DEVICES_PJRT_HOST_HOST_H
#define DEVICES_PJRT_HOST_HOST_H

/* The body of `penstock device-host PLUGIN`: loads the plugin, opens its devices, serves the
 * protocol on PJRT_HOST_CONTROL_FD until the server is gone. Returns the process's exit status. */
int pjrt_host_main(const char *plugin_path);

#endif
