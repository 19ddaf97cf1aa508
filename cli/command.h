#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* The subcommands of `penstock`. argv[0] is the subcommand's name; each returns the exit status. */
int command_serve(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_compile(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_device_host(int argc, char **argv);

/* `penstock inspect --device NAME`: opens the devices of "pjrt:PLUGIN" and says what they are. */
int inspect_device(const char *name);

#endif
