/* The parser, by recursive descent; precedences are Jinja's:
 *
 *   x if c else y | or | and | not | comparisons, in | + - | ~ | * / // % | ** | unary - + | . [] () | filters, tests
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tokenizer/jinja.h"

enum { MAX_DEPTH = 200 };

typedef struct parser {
    ct_arena *arena;
    const ct__jtoken *token;
    const char *name;
    int depth;
    int loops; /* that break and continue may leave */
} parser;

static ct_status *parse_expression(parser *p, ct__jnode **out);
static ct_status *parse_unary(parser *p, bool with_filter, ct__jnode **out);

static ct__jnode *new_node(const parser *p, ct__jnode_kind kind)
{
    ct__jnode *node = CT_ARENA_NEW(p->arena, ct__jnode);
    node->kind = kind;
    node->line = p->token->line;
    return node;
}

static ct__jnode *named_node(const parser *p, ct__jnode_kind kind, const ct__jtoken *token)
{
    ct__jnode *node = new_node(p, kind);
    node->text = token->text;
    node->length = token->length;
    return node;
}

static void add_node(const parser *p, ct__jnodes *nodes, ct__jnode *node)
{
    if (nodes->count == nodes->capacity) {
        size_t capacity = CT_MAX(nodes->capacity * 2, (size_t)4);
        ct__jnode **items = CT_ARENA_ARRAY(p->arena, ct__jnode *, capacity);
        if (nodes->count) memcpy(items, nodes->items, nodes->count * sizeof(*items));
        nodes->items = items;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

static bool is_token(const parser *p, ct__jtoken_kind kind, const char *text)
{
    return p->token->kind == kind && p->token->length == strlen(text) &&
           !memcmp(p->token->text, text, p->token->length);
}

static bool is_operator(const parser *p, const char *text)
{
    return is_token(p, CT__JT_OPERATOR, text);
}

static bool is_word(const parser *p, const char *text)
{
    return is_token(p, CT__JT_NAME, text);
}

static bool take_operator(parser *p, const char *text)
{
    bool found = is_operator(p, text);
    p->token += found;
    return found;
}

static bool take_word(parser *p, const char *text)
{
    bool found = is_word(p, text);
    p->token += found;
    return found;
}

#define parse_error(p, code, ...) ct__jinja_error((p)->name, (p)->token->line, (code), __FILE__, __LINE__, __VA_ARGS__)

static ct_status *unexpected(const parser *p, const char *wanted)
{
    static const char *const kinds[] = {"the template's end", "text", "{%", "%}", "{{", "}}"};
    if (p->token->kind <= CT__JT_OUTPUT_END)
        return parse_error(p, CT_CODE_INVALID_ARGUMENT, "%s was expected, found %s", wanted, kinds[p->token->kind]);
    return parse_error(p, CT_CODE_INVALID_ARGUMENT, "%s was expected, found \"%.*s\"", wanted,
                       (int)CT_MIN(p->token->length, (size_t)60), p->token->text);
}

static ct_status *need_operator(parser *p, const char *text)
{
    return take_operator(p, text) ? NULL : unexpected(p, text);
}

/* ---- Expressions ---- */

static ct_status *parse_list(parser *p, const char *close, ct__jnodes *items)
{
    while (!take_operator(p, close)) {
        ct__jnode *item;
        CT_TRY(parse_expression(p, &item));
        add_node(p, items, item);
        if (take_operator(p, ",")) continue;
        CT_TRY(need_operator(p, close));
        break;
    }
    return NULL;
}

static ct_status *parse_dict(parser *p, ct__jnode **out)
{
    *out = new_node(p, CT__JN_DICT);
    while (!take_operator(p, "}")) {
        ct__jnode *key, *value;
        CT_TRY(parse_expression(p, &key));
        CT_TRY(need_operator(p, ":"));
        CT_TRY(parse_expression(p, &value));
        add_node(p, &(*out)->items, key);
        add_node(p, &(*out)->items, value);
        if (take_operator(p, ",")) continue;
        CT_TRY(need_operator(p, "}"));
        break;
    }
    return NULL;
}

/* What stands in parentheses: a value, or a tuple when there is a comma. */
static ct_status *parse_parentheses(parser *p, ct__jnode **out)
{
    ct__jnode *tuple = new_node(p, CT__JN_TUPLE);
    if (take_operator(p, ")")) {
        *out = tuple;
        return NULL;
    }
    CT_TRY(parse_expression(p, out));
    if (take_operator(p, ")")) return NULL;
    CT_TRY(need_operator(p, ","));
    add_node(p, &tuple->items, *out);
    *out = tuple;
    return parse_list(p, ")", &tuple->items);
}

static ct_status *parse_number(parser *p, ct__jnode **out)
{
    *out = new_node(p, CT__JN_CONST);
    char digits[64];
    size_t length = 0;
    for (size_t i = 0; i < p->token->length && length + 1 < sizeof(digits); i++)
        if (p->token->text[i] != '_') digits[length++] = p->token->text[i];
    digits[length] = 0;
    errno = 0;
    if (p->token->kind == CT__JT_FLOAT)
        (*out)->value = (ct__jvalue){.kind = CT__J_FLOAT, .real = strtod(digits, NULL)};
    else
        (*out)->value = ct__jint(strtoll(digits, NULL, 10));
    if (p->token->kind == CT__JT_INT && (errno || p->token->length >= sizeof(digits)))
        return parse_error(p, CT_CODE_UNIMPLEMENTED, "integers beyond 64 bits are not supported, found %s", digits);
    p->token++;
    return NULL;
}

static ct_status *parse_string(parser *p, ct__jnode **out)
{
    *out = new_node(p, CT__JN_CONST);
    ct_str text;
    ct_str_init(&text);
    for (; p->token->kind == CT__JT_STRING; p->token++) ct_str_append_n(&text, p->token->text, p->token->length);
    (*out)->value = ct__jstring(ct_arena_strndup(p->arena, text.data, text.length), text.length);
    ct_str_deinit(&text);
    return NULL;
}

static ct_status *parse_primary(parser *p, ct__jnode **out)
{
    static const struct {
        const char *name;
        ct__jvalue value;
    } constants[] = {
        {"true", {.kind = CT__J_BOOL, .boolean = true}},
        {"True", {.kind = CT__J_BOOL, .boolean = true}},
        {"false", {.kind = CT__J_BOOL, .boolean = false}},
        {"False", {.kind = CT__J_BOOL, .boolean = false}},
        {"none", {.kind = CT__J_NONE}},
        {"None", {.kind = CT__J_NONE}},
    };
    *out = NULL;
    if (p->token->kind == CT__JT_INT || p->token->kind == CT__JT_FLOAT) return parse_number(p, out);
    if (p->token->kind == CT__JT_STRING) return parse_string(p, out);
    if (take_operator(p, "(")) return parse_parentheses(p, out);
    if (take_operator(p, "{")) return parse_dict(p, out);
    if (is_operator(p, "[")) {
        *out = new_node(p, CT__JN_LIST);
        p->token++;
        return parse_list(p, "]", &(*out)->items);
    }
    if (p->token->kind != CT__JT_NAME) return unexpected(p, "a value");
    for (size_t i = 0; i < CT_COUNT(constants); i++) {
        if (!is_word(p, constants[i].name)) continue;
        *out = new_node(p, CT__JN_CONST);
        (*out)->value = constants[i].value;
        p->token++;
        return NULL;
    }
    *out = named_node(p, CT__JN_NAME, p->token);
    p->token++;
    return NULL;
}

/* Behind "(": arguments, names with values among them. */
static ct_status *parse_arguments(parser *p, ct__jnodes *items)
{
    while (!take_operator(p, ")")) {
        if (is_operator(p, "*") || is_operator(p, "**"))
            return parse_error(p, CT_CODE_UNIMPLEMENTED, "a call with %.*s is not supported", (int)p->token->length,
                               p->token->text);
        ct__jnode *item, *keyword = NULL;
        if (p->token->kind == CT__JT_NAME && p->token[1].kind == CT__JT_OPERATOR && p->token[1].length == 1 &&
            p->token[1].text[0] == '=') {
            keyword = named_node(p, CT__JN_KEYWORD, p->token);
            p->token += 2;
        }
        CT_TRY(parse_expression(p, &item));
        if (keyword) keyword->a = item;
        add_node(p, items, keyword ? keyword : item);
        if (take_operator(p, ",")) continue;
        CT_TRY(need_operator(p, ")"));
        break;
    }
    return NULL;
}

/* Behind "[": an index, or a slice of up to three parts. */
static ct_status *parse_subscript(parser *p, ct__jnode *of, ct__jnode **out)
{
    *out = new_node(p, CT__JN_ITEM);
    (*out)->a = of;
    ct__jnode *parts[3] = {NULL};
    size_t num_colons = 0;
    for (;;) {
        if (take_operator(p, ":")) {
            if (++num_colons > 2) return unexpected(p, "]");
            continue;
        }
        if (take_operator(p, "]")) break;
        if (parts[num_colons]) return unexpected(p, "]");
        CT_TRY(parse_expression(p, &parts[num_colons]));
    }
    if (num_colons) {
        (*out)->kind = CT__JN_SLICE;
        for (size_t i = 0; i < 3; i++) add_node(p, &(*out)->items, parts[i]);
        return NULL;
    }
    if (!parts[0]) return unexpected(p, "an index");
    (*out)->b = parts[0];
    return NULL;
}

static ct_status *parse_postfix(parser *p, ct__jnode **node)
{
    for (;;) {
        ct__jnode *outer;
        if (take_operator(p, ".")) {
            if (p->token->kind == CT__JT_INT) {
                outer = new_node(p, CT__JN_ITEM);
                CT_TRY(parse_number(p, &outer->b));
            } else if (p->token->kind == CT__JT_NAME) {
                outer = named_node(p, CT__JN_ATTRIBUTE, p->token);
                p->token++;
            } else {
                return unexpected(p, "the name of an attribute");
            }
            outer->a = *node;
        } else if (take_operator(p, "[")) {
            CT_TRY(parse_subscript(p, *node, &outer));
        } else if (is_operator(p, "(")) {
            outer = new_node(p, CT__JN_CALL);
            p->token++;
            outer->a = *node;
            CT_TRY(parse_arguments(p, &outer->items));
        } else {
            return NULL;
        }
        *node = outer;
    }
}

/* An argument of a test may stand without parentheses. */
static bool begins_argument(const parser *p)
{
    ct__jtoken_kind kind = p->token->kind;
    if (kind == CT__JT_NAME) {
        static const char *const others[] = {"else", "or", "and", "is", "if", "in", "not"};
        for (size_t i = 0; i < CT_COUNT(others); i++)
            if (is_word(p, others[i])) return false;
        return true;
    }
    return kind == CT__JT_STRING || kind == CT__JT_INT || kind == CT__JT_FLOAT || is_operator(p, "[") ||
           is_operator(p, "{");
}

static ct_status *parse_test(parser *p, ct__jnode **node)
{
    bool negated = take_word(p, "not");
    if (p->token->kind != CT__JT_NAME) return unexpected(p, "the name of a test");
    ct__jnode *test = named_node(p, CT__JN_TEST, p->token);
    p->token++;
    test->a = *node;
    if (take_operator(p, "(")) {
        CT_TRY(parse_arguments(p, &test->items));
    } else if (begins_argument(p)) {
        ct__jnode *argument;
        CT_TRY(parse_primary(p, &argument));
        CT_TRY(parse_postfix(p, &argument));
        add_node(p, &test->items, argument);
    }
    *node = test;
    if (!negated) return NULL;
    *node = new_node(p, CT__JN_NOT);
    (*node)->a = test;
    return NULL;
}

static ct_status *parse_filters(parser *p, ct__jnode **node)
{
    for (;;) {
        if (take_operator(p, "|")) {
            if (p->token->kind != CT__JT_NAME) return unexpected(p, "the name of a filter");
            ct__jnode *filter = named_node(p, CT__JN_FILTER, p->token);
            p->token++;
            filter->a = *node;
            if (take_operator(p, "(")) CT_TRY(parse_arguments(p, &filter->items));
            *node = filter;
        } else if (take_word(p, "is")) {
            CT_TRY(parse_test(p, node));
        } else if (is_operator(p, "(")) {
            CT_TRY(parse_postfix(p, node));
        } else {
            return NULL;
        }
    }
}

static ct_status *enter(parser *p)
{
    if (++p->depth <= MAX_DEPTH) return NULL;
    return parse_error(p, CT_CODE_UNIMPLEMENTED, "nesting deeper than %d is not supported", MAX_DEPTH);
}

static ct_status *parse_unary(parser *p, bool with_filter, ct__jnode **out)
{
    *out = NULL;
    CT_TRY(enter(p));
    if (is_operator(p, "-") || is_operator(p, "+")) {
        ct__jnode *node = new_node(p, is_operator(p, "-") ? CT__JN_NEGATE : CT__JN_POSITIVE);
        p->token++;
        CT_TRY(parse_unary(p, false, &node->a));
        *out = node;
    } else {
        CT_TRY(parse_primary(p, out));
        CT_TRY(parse_postfix(p, out));
    }
    if (with_filter) CT_TRY(parse_filters(p, out));
    p->depth--;
    return NULL;
}

/* Operators that bind alike and to the left, by level; the last level is that of unary expressions. */
static ct_status *parse_binary(parser *p, int level, ct__jnode **out)
{
    static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "//", "/", "%"}, {"**"}};
    if (level == (int)CT_COUNT(levels)) return parse_unary(p, true, out);
    CT_TRY(parse_binary(p, level + 1, out));
    for (;;) {
        const char *const *operator= levels[level];
        while (*operator&& !is_operator(p, *operator)) operator++;
        if (!*operator) return NULL;
        ct__jnode *node = named_node(p, CT__JN_BINARY, p->token);
        p->token++;
        node->a = *out;
        CT_TRY(parse_binary(p, level + 1, &node->b));
        *out = node;
    }
}

static ct_status *parse_compare(parser *p, ct__jnode **out)
{
    static const char *const operators[] = {"==", "!=", "<", "<=", ">", ">="};
    CT_TRY(parse_binary(p, 0, out));
    ct__jnode *compare = NULL;
    for (;;) {
        ct__jtoken found = *p->token;
        bool is_compare = false;
        for (size_t i = 0; i < CT_COUNT(operators); i++) is_compare = is_compare || is_operator(p, operators[i]);
        if (!is_compare && is_word(p, "not") && p->token[1].kind == CT__JT_NAME && p->token[1].length == 2 &&
            !memcmp(p->token[1].text, "in", 2)) {
            found.text = "not in";
            found.length = 6;
            p->token++;
            is_compare = true;
        }
        if (!is_compare && !is_word(p, "in")) return NULL;
        p->token++;
        if (!compare) {
            compare = new_node(p, CT__JN_COMPARE);
            compare->a = *out;
            *out = compare;
        }
        ct__jnode *operand;
        CT_TRY(parse_binary(p, 0, &operand));
        add_node(p, &compare->items, named_node(p, CT__JN_TEXT, &found));
        add_node(p, &compare->items, operand);
    }
}

static ct_status *parse_not(parser *p, ct__jnode **out)
{
    if (!is_word(p, "not")) return parse_compare(p, out);
    ct__jnode *node = new_node(p, CT__JN_NOT);
    p->token++;
    CT_TRY(enter(p));
    CT_TRY(parse_not(p, &node->a));
    p->depth--;
    *out = node;
    return NULL;
}

static ct_status *parse_and(parser *p, ct__jnode **out)
{
    CT_TRY(parse_not(p, out));
    while (take_word(p, "and")) {
        ct__jnode *node = new_node(p, CT__JN_AND);
        node->a = *out;
        CT_TRY(parse_not(p, &node->b));
        *out = node;
    }
    return NULL;
}

static ct_status *parse_or(parser *p, ct__jnode **out)
{
    CT_TRY(parse_and(p, out));
    while (take_word(p, "or")) {
        ct__jnode *node = new_node(p, CT__JN_OR);
        node->a = *out;
        CT_TRY(parse_and(p, &node->b));
        *out = node;
    }
    return NULL;
}

static ct_status *parse_expression(parser *p, ct__jnode **out)
{
    *out = NULL;
    CT_TRY(enter(p));
    CT_TRY(parse_or(p, out));
    while (take_word(p, "if")) {
        ct__jnode *node = new_node(p, CT__JN_CONDITION), *otherwise = NULL;
        node->a = *out;
        CT_TRY(parse_or(p, &node->b));
        if (take_word(p, "else")) CT_TRY(parse_expression(p, &otherwise));
        add_node(p, &node->items, otherwise);
        *out = node;
    }
    p->depth--;
    return NULL;
}

/* a, b, c without parentheses is a tuple. */
static ct_status *parse_open_tuple(parser *p, ct__jnode **out)
{
    CT_TRY(parse_expression(p, out));
    if (!is_operator(p, ",")) return NULL;
    ct__jnode *tuple = new_node(p, CT__JN_TUPLE);
    add_node(p, &tuple->items, *out);
    while (take_operator(p, ",")) {
        if (p->token->kind == CT__JT_BLOCK_END || p->token->kind == CT__JT_OUTPUT_END) break;
        ct__jnode *item;
        CT_TRY(parse_expression(p, &item));
        add_node(p, &tuple->items, item);
    }
    *out = tuple;
    return NULL;
}

/* ---- Statements ---- */

static ct_status *parse_body(parser *p, ct__jnodes *nodes, const char *const *ends);

static ct_status *end_block(parser *p)
{
    if (p->token->kind != CT__JT_BLOCK_END) return unexpected(p, "%}");
    p->token++;
    return NULL;
}

static ct_status *parse_targets(parser *p, ct__jnodes *targets, bool attributes)
{
    bool parentheses = take_operator(p, "(");
    do {
        if (p->token->kind != CT__JT_NAME) return unexpected(p, "a name");
        ct__jnode *target = named_node(p, CT__JN_NAME, p->token);
        p->token++;
        if (attributes && take_operator(p, ".")) {
            if (p->token->kind != CT__JT_NAME) return unexpected(p, "the name of an attribute");
            ct__jnode *attribute = named_node(p, CT__JN_ATTRIBUTE, p->token);
            p->token++;
            attribute->a = target;
            target = attribute;
        }
        add_node(p, targets, target);
    } while (take_operator(p, ","));
    return parentheses ? need_operator(p, ")") : NULL;
}

static ct_status *parse_set(parser *p, ct__jnode **out)
{
    ct__jnode *node = *out = new_node(p, CT__JN_SET);
    CT_TRY(parse_targets(p, &node->items, true));
    if (take_operator(p, "=")) {
        CT_TRY(parse_open_tuple(p, &node->a));
        return end_block(p);
    }
    if (is_operator(p, "|")) return parse_error(p, CT_CODE_UNIMPLEMENTED, "a set block with a filter is not supported");
    CT_TRY(end_block(p));
    CT_TRY(parse_body(p, &node->body, (const char *const[]){"endset", NULL}));
    p->token++;
    return end_block(p);
}

static ct_status *parse_if(parser *p, ct__jnode **out)
{
    ct__jnode *node = *out = new_node(p, CT__JN_IF);
    CT_TRY(parse_expression(p, &node->a));
    CT_TRY(end_block(p));
    CT_TRY(parse_body(p, &node->body, (const char *const[]){"elif", "else", "endif", NULL}));
    if (take_word(p, "elif")) {
        ct__jnode *otherwise;
        CT_TRY(enter(p));
        CT_TRY(parse_if(p, &otherwise));
        p->depth--;
        add_node(p, &node->otherwise, otherwise);
        return NULL;
    }
    if (take_word(p, "else")) {
        CT_TRY(end_block(p));
        CT_TRY(parse_body(p, &node->otherwise, (const char *const[]){"endif", NULL}));
    }
    p->token++;
    return end_block(p);
}

static ct_status *parse_for(parser *p, ct__jnode **out)
{
    ct__jnode *node = *out = new_node(p, CT__JN_FOR);
    CT_TRY(parse_targets(p, &node->items, false));
    if (!take_word(p, "in")) return unexpected(p, "in");
    /* Without a condition: "if" filters what is walked over. */
    CT_TRY(parse_or(p, &node->a));
    if (take_word(p, "if")) CT_TRY(parse_expression(p, &node->b));
    if (is_word(p, "recursive")) return parse_error(p, CT_CODE_UNIMPLEMENTED, "a recursive loop is not supported");
    CT_TRY(end_block(p));
    p->loops++;
    CT_TRY(parse_body(p, &node->body, (const char *const[]){"else", "endfor", NULL}));
    p->loops--;
    if (take_word(p, "else")) {
        CT_TRY(end_block(p));
        CT_TRY(parse_body(p, &node->otherwise, (const char *const[]){"endfor", NULL}));
    }
    p->token++;
    return end_block(p);
}

static ct_status *parse_macro(parser *p, ct__jnode **out)
{
    if (p->token->kind != CT__JT_NAME) return unexpected(p, "the name of a macro");
    ct__jnode *node = *out = named_node(p, CT__JN_MACRO, p->token);
    p->token++;
    CT_TRY(need_operator(p, "("));
    while (!take_operator(p, ")")) {
        if (p->token->kind != CT__JT_NAME) return unexpected(p, "the name of a parameter");
        ct__jnode *parameter = named_node(p, CT__JN_NAME, p->token);
        p->token++;
        if (take_operator(p, "=")) CT_TRY(parse_expression(p, &parameter->b));
        add_node(p, &node->items, parameter);
        if (take_operator(p, ",")) continue;
        CT_TRY(need_operator(p, ")"));
        break;
    }
    CT_TRY(end_block(p));
    int loops = p->loops;
    p->loops = 0;
    CT_TRY(parse_body(p, &node->body, (const char *const[]){"endmacro", NULL}));
    p->loops = loops;
    p->token++;
    return end_block(p);
}

static ct_status *parse_statement(parser *p, ct__jnode **out)
{
    *out = NULL;
    if (take_word(p, "set")) return parse_set(p, out);
    if (take_word(p, "if")) return parse_if(p, out);
    if (take_word(p, "for")) return parse_for(p, out);
    if (take_word(p, "macro")) return parse_macro(p, out);
    if (is_word(p, "break") || is_word(p, "continue")) {
        if (!p->loops) return parse_error(p, CT_CODE_INVALID_ARGUMENT, "break and continue belong in a loop");
        *out = new_node(p, is_word(p, "break") ? CT__JN_BREAK : CT__JN_CONTINUE);
        p->token++;
        return end_block(p);
    }
    if (take_word(p, "generation")) {
        *out = new_node(p, CT__JN_GENERATION);
        CT_TRY(end_block(p));
        CT_TRY(parse_body(p, &(*out)->body, (const char *const[]){"endgeneration", NULL}));
        p->token++;
        return end_block(p);
    }
    return parse_error(p, CT_CODE_UNIMPLEMENTED, "the statement {%% %.*s %%} is not supported", (int)p->token->length,
                       p->token->text);
}

/* Up to a block that begins with one of `ends` (NULL-terminated; NULL: up to the end), whose name is the next token. */
static ct_status *parse_body(parser *p, ct__jnodes *nodes, const char *const *ends)
{
    CT_TRY(enter(p));
    int first_line = ends ? p->token[-1].line : 0;
    for (;;) {
        ct__jnode *node = NULL;
        if (p->token->kind == CT__JT_TEXT) {
            node = named_node(p, CT__JN_TEXT, p->token);
            p->token++;
        } else if (p->token->kind == CT__JT_OUTPUT_BEGIN) {
            node = new_node(p, CT__JN_OUTPUT);
            p->token++;
            CT_TRY(parse_open_tuple(p, &node->a));
            if (p->token->kind != CT__JT_OUTPUT_END) return unexpected(p, "}}");
            p->token++;
        } else if (p->token->kind == CT__JT_BLOCK_BEGIN) {
            p->token++;
            if (p->token->kind != CT__JT_NAME) return unexpected(p, "a statement");
            for (size_t i = 0; ends && ends[i]; i++) {
                if (!is_word(p, ends[i])) continue;
                p->depth--;
                return NULL;
            }
            CT_TRY(parse_statement(p, &node));
        } else { /* the end */
            if (ends) {
                while (ends[1]) ends++; /* the last one closes the block */
                return parse_error(p, CT_CODE_INVALID_ARGUMENT, "{%% %s %%} is missing for the block of line %d", *ends,
                                   first_line);
            }
            p->depth--;
            return NULL;
        }
        add_node(p, nodes, node);
    }
}

ct_status *ct__jinja_parse(ct_arena *arena, const ct__jtokens *tokens, const char *name, ct__jnodes *out_nodes)
{
    *out_nodes = (ct__jnodes){0};
    parser p = {.arena = arena, .token = tokens->items, .name = name};
    return parse_body(&p, out_nodes, NULL);
}
