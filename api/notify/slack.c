#include "api/notify/slack.h"

#include "api/json/format.h"
#include "api/notify/news.h"

#include <string.h>

/* SLACK_MAX: characters of a text that Slack takes; a longer one has it refuse the message. Bytes are counted here, which are
 * as many or more. SHOWN: changes that a message for people names; of more it says how many there are. */
enum { SLACK_MAX = 3000, SHOWN = 10 };

/* Bytes of a control character that turns the direction of a text in UTF-8 (U+061C, U+200E, U+200F, U+202A to U+202E, U+2066
 * to U+2069); 0 for others. */
static size_t bidi_control(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] == 0xd8 && p[1] == 0x9c)
        return 2;
    bool is_one =
        p[0] == 0xe2 &&
        ((p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae))) ||
         (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9));
    return is_one ? 3 : 0;
}

/* Appends a text as a JSON string, cut to SLACK_MAX; `escapes` the three characters that Slack's mrkdwn escapes. */
static void write_string(const char *from, bool escapes, struct api_buffer *out)
{
    static const char cut[] = "…";
    enum { LONGEST = 5 }; /* "&amp;", or a character of 4 bytes */
    char memory[SLACK_MAX + 1];
    struct api_buffer text = {0};
    api_buffer_borrow(&text, memory, sizeof memory);
    for (size_t n; *from; from += n) {
        bool begins = ((unsigned char)*from & 0xc0) != 0x80;
        n = bidi_control(from);
        if (n > 0)
            continue;
        n = 1;
        if (begins && text.size > SLACK_MAX - LONGEST - sizeof cut) {
            api_append_text(&text, cut);
            break;
        }
        if (escapes && *from == '&')
            api_append_text(&text, "&amp;");
        else if (escapes && *from == '<')
            api_append_text(&text, "&lt;");
        else if (escapes && *from == '>')
            api_append_text(&text, "&gt;");
        else
            api_append(&text, from, 1);
    }
    api_append(&text, "", 1);
    api_append_json_string(out, text.failed ? "" : text.data);
    api_buffer_free(&text);
}

/* Writes as a string what `write` appends. */
#define WRITE(out, escapes, write)                                                                 \
    do {                                                                                           \
        char memory_[4000];                                                                        \
        struct api_buffer text = {0};                                                              \
        api_buffer_borrow(&text, memory_, sizeof memory_);                                         \
        write;                                                                                     \
        api_append(&text, "", 1);                                                                  \
        write_string(text.failed ? "" : text.data, escapes, out);                                  \
        api_buffer_free(&text);                                                                    \
    } while (0)

/* A block of words of our own; and one of others' texts, which no character of theirs formats. */
#define SECTION "{\"type\":\"section\",\"text\":{\"type\":\"mrkdwn\",\"text\":"
#define RICH "{\"type\":\"rich_text\",\"elements\":[{\"type\":\"rich_text_section\",\"elements\":["
#define RICH_END "]}]}"

static void write_change(const struct api_message *message, const struct api_change *change,
                         struct api_buffer *out)
{
    enum { LONGEST_URL = 500 }; /* with the names, encoded, less than SLACK_MAX */
    static const char *const marks[API_STATES] = {
        "white_circle", "large_green_circle", "large_yellow_circle", "red_circle", "black_circle"};
    api_append_format(
        out, RICH "{\"type\":\"emoji\",\"name\":\"%s\"},{\"type\":\"text\",\"text\":\" \"},{",
        marks[change->to]);
    if (message->public_url && strlen(message->public_url) < LONGEST_URL) {
        api_append_text(out, "\"type\":\"link\",\"url\":");
        API_WRITE_STRING(out, api_news_write_url(message, change, &text));
    } else {
        api_append_text(out, "\"type\":\"text\"");
    }
    api_append_text(out, ",\"style\":{\"bold\":true},\"text\":");
    WRITE(out, false, api_news_write_subject(change, &text));
    api_append_text(out, "},{\"type\":\"text\",\"text\":");
    WRITE(out, false, {
        api_append_text(&text, " ");
        api_news_write(change, &text);
    });
    api_append_text(out, "}" RICH_END);
}

void api_slack_write(const struct api_message *message, struct api_buffer *out)
{
    bool is_incident = false;
    api_append_text(out, "{\"mrkdwn\":false,\"text\":");
    WRITE(out, true, is_incident = api_news_write_line(message, &text));
    api_append_text(out, ",\"blocks\":[");
    if (is_incident) {
        api_append_text(out, RICH "{\"type\":\"text\",\"text\":");
        WRITE(out, false, api_news_write_line(message, &text));
        api_append_text(out, "}" RICH_END ",");
    }
    if (message->is_test)
        api_append_text(out, SECTION "\"*Test* of kldiv: nothing has happened.\"}},");
    if (message->is_reminder)
        api_append_text(out, SECTION "\"*Reminder* of what is still critical.\"}},");
    for (size_t i = 0; i < message->n && i < SHOWN; i++) {
        api_append(out, ",", i > 0);
        write_change(message, &message->changes[i], out);
    }
    if (message->n > SHOWN)
        api_append_format(out, "," SECTION "\"… and %zu more\"}}", message->n - SHOWN);
    api_append_text(out, "]}\n");
}
