/* Unix sockets: at a path, whose file the server makes and removes, or abstract, by a name alone. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* True for "unix:PATH" and "unix:@NAME". */
bool srv_unix_is(const char *address);

/* The path of "unix:PATH", a part of it; NULL for all other addresses. */
const char *srv_unix_path(const char *address);

/* Fills what bind and connect take of "unix:…"; 0 if the path or the name is empty or longer than 107
 * bytes, else its size in bytes. */
socklen_t srv_unix_name(const char *address, struct sockaddr_un *name);

/* Formats a name of `size` bytes as "unix:…"; '@' stands for the NUL of an abstract one. */
void srv_unix_text(const struct sockaddr_un *name, socklen_t size, char *to, size_t room);

/* Binds and listens on "unix:…", with the rights `mode` for a path from its first moment. A socket that
 * is left of a server which does not run any more is replaced; not one that is listened on, and no
 * other file. Servers that start at once on one path take turns, by a lock on its folder, for up to 1 s. Returns the
 * descriptor, which does not block, or -1 with one line on `errors` that names `option`. Called before
 * other threads run: it sets the umask for a moment. */
int srv_unix_listen(const char *option, const char *address, mode_t mode, FILE *errors);

/* srv_unix_file: the file of a socket at a path; `path` NULL for none. */
struct srv_unix_file {
    const char *path;
    dev_t device;
    ino_t inode;
};

/* The file that is at the path of an address now. `address` outlives it. */
struct srv_unix_file srv_unix_file(const char *address);

/* Removes the file, if it still is the one that it was, and forgets it. False, with errno set, if it
 * cannot be removed. */
bool srv_unix_remove(struct srv_unix_file *file);

/* Fills the process that connected a unix socket, as it was then; zeros if the kernel does not tell. */
void srv_unix_peer(int fd, struct ucred *peer);
