/* The endpoints below /monitors and /groups, for the table of api/endpoints.c. */
#pragma once

#include "api/request/endpoint.h"

extern const struct api_steps api_observations, api_evaluate; /* post.c */
extern const struct api_steps api_put, api_patch;             /* put.c, patch.c */
extern const struct api_steps api_renew_references;           /* promote.c */
extern const struct api_steps api_delete, api_delete_window, api_delete_windows,
    api_delete_group_windows;                                           /* delete.c */
extern const struct api_steps api_mute, api_unmute;                     /* mute.c */
extern const struct api_steps api_notes, api_note_add, api_note_delete; /* notes.c */
extern const struct api_steps api_list_monitors, api_show_configs;      /* list.c */
extern const struct api_steps api_list_groups, api_group;               /* groups.c */
extern const struct api_steps api_windows, api_window;                  /* history.c */
extern const struct api_steps api_compare;                              /* compare.c */
extern const struct api_steps api_compare_tables;                       /* compare_tables.c */
extern const struct api_steps api_events, api_all_events;               /* events.c */
extern const struct api_steps api_notifications, api_notify_test;       /* notifications.c */
