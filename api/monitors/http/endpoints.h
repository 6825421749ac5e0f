/* The endpoints below /monitors, for the table of api/endpoints.c. */
#pragma once

#include "api/request/exchange.h"

/* post.c: POST observations, of a group or a monitor, and evaluate */
bool api_post_begin(struct api_exchange *x);
bool api_post_prepare(struct api_exchange *x, double max_ns);
bool api_evaluate_prepare(struct api_exchange *x, double max_ns);
bool api_post(struct api_exchange *x);
void api_post_end(struct api_exchange *x);

/* delete.c: DELETE of a group or a monitor */
bool api_delete_begin(struct api_exchange *x);
bool api_delete_prepare(struct api_exchange *x, double max_ns);
bool api_delete(struct api_exchange *x);
void api_delete_end(struct api_exchange *x);

/* mute.c: nobody is told of a group or a monitor until a time, or is told again */
bool api_mute_begin(struct api_exchange *x);
bool api_mute_prepare(struct api_exchange *x, double max_ns);
bool api_mute(struct api_exchange *x);
bool api_unmute_begin(struct api_exchange *x);
bool api_unmute_prepare(struct api_exchange *x, double max_ns);
bool api_unmute(struct api_exchange *x);
void api_mute_end(struct api_exchange *x);

/* notes.c: what people say about periods of a group or a monitor */
bool api_notes_begin(struct api_exchange *x);
bool api_notes_prepare(struct api_exchange *x, double max_ns);
bool api_notes(struct api_exchange *x);
void api_notes_end(struct api_exchange *x);
bool api_note_add_begin(struct api_exchange *x);
bool api_note_add_prepare(struct api_exchange *x, double max_ns);
bool api_note_add(struct api_exchange *x);
void api_note_add_end(struct api_exchange *x);
bool api_note_delete_begin(struct api_exchange *x);
bool api_note_delete_prepare(struct api_exchange *x, double max_ns);
bool api_note_delete(struct api_exchange *x);

/* notifications.c: who is told of changes, and a test */
bool api_notifications_begin(struct api_exchange *x);
bool api_notifications(struct api_exchange *x);
bool api_notify_test_begin(struct api_exchange *x);
bool api_notify_test_prepare(struct api_exchange *x, double max_ns);
bool api_notify_test(struct api_exchange *x);
void api_notify_test_end(struct api_exchange *x);

/* put.c: PUT of a group or a monitor; the last two also for the next */
bool api_put_begin(struct api_exchange *x);
bool api_put_prepare(struct api_exchange *x, double max_ns);
bool api_put(struct api_exchange *x);
void api_put_end(struct api_exchange *x);

/* patch.c: PATCH of a group or a monitor */
bool api_patch_begin(struct api_exchange *x);
bool api_patch_prepare(struct api_exchange *x, double max_ns);

/* promote.c: POST reference */
bool api_promote_windows_begin(struct api_exchange *x);
bool api_promote_windows_prepare(struct api_exchange *x, double max_ns);

/* list.c: lists and configs, from memory */
bool api_list_begin(struct api_exchange *x);
bool api_list_prepare(struct api_exchange *x, double max_ns);
void api_list_end(struct api_exchange *x);
bool api_list_monitors(struct api_exchange *x);
bool api_list_group(struct api_exchange *x);
bool api_show_monitor(struct api_exchange *x);

/* history.c: windows */
bool api_history_begin(struct api_exchange *x);
bool api_windows_prepare(struct api_exchange *x, double max_ns);
bool api_windows(struct api_exchange *x);
bool api_window_prepare(struct api_exchange *x, double max_ns);
bool api_window_show(struct api_exchange *x);
void api_history_end(struct api_exchange *x);

/* compare.c: periods */
bool api_compare_prepare(struct api_exchange *x, double max_ns);
bool api_compare(struct api_exchange *x);
void api_compare_end(struct api_exchange *x);

/* events.c: changes of states, of one monitor and of all */
bool api_events_prepare(struct api_exchange *x, double max_ns);
bool api_all_events_begin(struct api_exchange *x);
bool api_all_events_prepare(struct api_exchange *x, double max_ns);
bool api_events(struct api_exchange *x);
void api_events_end(struct api_exchange *x);

/* groups.c: groups, and one with its history */
bool api_list_groups(struct api_exchange *x);
bool api_group_begin(struct api_exchange *x);
bool api_group_prepare(struct api_exchange *x, double max_ns);
bool api_group(struct api_exchange *x);
void api_group_end(struct api_exchange *x);
