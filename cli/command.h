#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/* The commands of `penstock`. argv[0] is the command's name. Each returns the exit status: 0 done,
 * 1 failed, 2 wrong usage. */
int command_serve(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_compile(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_key(int argc, char **argv);
int command_health(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_device_host(int argc, char **argv);

#endif
