/* The folders by whose entries a path leads to its file. */
#pragma once

/* srv_entry: what a folder holds of a path. */
enum srv_entry {
    SRV_FILE, /* the file, or a link that stands for it */
    SRV_LINK_BELOW, /* a link to a folder below this one, which another may replace: releases/1, releases/2 */
    SRV_LINK_ELSEWHERE, /* a link to a folder that is elsewhere */
};

/* Calls `visit` with each of them in the order of the path, as far as symbolic links lead. */
void srv_path_folders(const char *path,
                      void (*visit)(void *context, const char *folder, enum srv_entry entry),
                      void *context);
