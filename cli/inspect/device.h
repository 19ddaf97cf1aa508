#ifndef CLI_INSPECT_DEVICE_H
#define CLI_INSPECT_DEVICE_H

/* Opens the devices of "pjrt:PLUGIN.so" and prints what they are. Returns the exit status. */
int inspect_device(const char *name);

#endif
