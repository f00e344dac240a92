import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.operator.CepOperator;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Runs CEP jobs, one for each line of JSON on standard input, and prints what comes out, one line each. */
public class CepOracle {

    static final ObjectMapper JSON = new ObjectMapper();
    static ArrayNode log;

    public static class Event {
        public int id;
        public String key;
        public String kind;
        public int price;

        public Event() {}
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream results = System.out;
        System.setOut(System.err);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            log = JSON.createArrayNode();
            try {
                run(JSON.readTree(line));
            } catch (Throwable failure) {
                Throwable cause = failure;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                log.add(JSON.createArrayNode().add("error").add(cause.getClass().getSimpleName()));
            }
            results.println(JSON.writeValueAsString(log));
            results.flush();
        }
    }

    static void run(JsonNode job) throws Exception {
        Pattern<Event, ?> pattern = chain(job.get("chain"), skip(job.get("skip")));
        boolean timeouts = job.get("timeouts").asBoolean();
        boolean processingTime = job.get("time").asText().equals("processing");
        OutputTag<Event> late = new OutputTag<>("late", TypeInformation.of(Event.class));
        TypeInformation<Event> type = TypeInformation.of(Event.class);
        CepOperator<Event, String, String> operator =
                new CepOperator<>(
                        type.createSerializer(new SerializerConfigImpl()),
                        processingTime,
                        NFACompiler.compileFactory(pattern, timeouts),
                        job.get("comparator").asBoolean() ? new ByPrice() : null,
                        pattern.getAfterMatchSkipStrategy(),
                        timeouts ? new RecordWithTimeouts() : new Record(),
                        late);
        try (KeyedOneInputStreamOperatorTestHarness<String, Event, String> harness =
                new KeyedOneInputStreamOperatorTestHarness<>(operator, e -> e.key, TypeInformation.of(String.class))) {
            harness.open();
            int id = 0;
            for (JsonNode step : job.get("script")) {
                switch (step.get(0).asText()) {
                    case "e":
                        Event event = new Event();
                        event.id = id++;
                        event.key = step.get(1).asText();
                        event.kind = step.get(2).asText();
                        event.price = step.get(3).asInt();
                        harness.processElement(new StreamRecord<>(event, step.get(4).asLong()));
                        break;
                    case "w":
                        harness.processWatermark(step.get(1).asLong());
                        log.add(JSON.createArrayNode().add("w").add(step.get(1).asLong()));
                        break;
                    default:
                        harness.setProcessingTime(step.get(1).asLong());
                }
            }
            if (harness.getSideOutput(late) != null) {
                for (StreamRecord<Event> record : harness.getSideOutput(late)) {
                    log.add(JSON.createArrayNode().add("late").add(record.getValue().id).add(record.getTimestamp()));
                }
            }
        }
    }

    // -- patterns ----------------------------------------------------------------------------------------------------

    static AfterMatchSkipStrategy skip(JsonNode skip) {
        switch (skip.get(0).asText()) {
            case "next":
                return AfterMatchSkipStrategy.skipToNext();
            case "past":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "first":
                return skip.get(2).asBoolean()
                        ? AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText()).throwExceptionOnMiss()
                        : AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText());
            case "last":
                return skip.get(2).asBoolean()
                        ? AfterMatchSkipStrategy.skipToLast(skip.get(1).asText()).throwExceptionOnMiss()
                        : AfterMatchSkipStrategy.skipToLast(skip.get(1).asText());
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    static Pattern<Event, Event> chain(JsonNode elements, AfterMatchSkipStrategy skip) {
        Pattern<Event, Event> pattern = null;
        for (JsonNode element : elements) {
            pattern = quantify(link(pattern, element, skip), element);
        }
        return pattern;
    }

    static Pattern<Event, Event> link(Pattern<Event, Event> before, JsonNode element, AfterMatchSkipStrategy skip) {
        String name = element.get("name").asText();
        Pattern<Event, Event> group =
                element.hasNonNull("group") ? chain(element.get("group"), AfterMatchSkipStrategy.noSkip()) : null;
        Pattern<Event, Event> pattern;
        switch (element.get("link").asText()) {
            case "begin":
                pattern = group == null ? Pattern.<Event>begin(name, skip) : Pattern.begin(group, skip);
                break;
            case "next":
                pattern = group == null ? before.next(name) : before.next(group);
                break;
            case "follow":
                pattern = group == null ? before.followedBy(name) : before.followedBy(group);
                break;
            case "any":
                pattern = group == null ? before.followedByAny(name) : before.followedByAny(group);
                break;
            case "not_next":
                pattern = before.notNext(name);
                break;
            default:
                pattern = before.notFollowedBy(name);
        }
        if (group == null && element.hasNonNull("cond")) {
            pattern.where(new Condition(element.get("cond").toString()));
        }
        return pattern;
    }

    static Pattern<Event, Event> quantify(Pattern<Event, Event> pattern, JsonNode element) {
        JsonNode quantifier = element.get("quant");
        Duration apart = element.hasNonNull("apart") ? Duration.ofMillis(element.get("apart").asLong()) : null;
        switch (quantifier.get(0).asText()) {
            case "loop":
                pattern.timesOrMore(quantifier.get(1).asInt(), apart);
                break;
            case "times":
                if (quantifier.get(1).asInt() == quantifier.get(2).asInt()) {
                    pattern.times(quantifier.get(1).asInt(), apart);
                } else {
                    pattern.times(quantifier.get(1).asInt(), quantifier.get(2).asInt(), apart);
                }
                break;
            default:
        }
        if (element.get("optional").asBoolean()) {
            pattern.optional();
        }
        if (element.get("greedy").asBoolean()) {
            pattern.greedy();
        }
        if (element.get("inner").asText().equals("strict")) {
            pattern.consecutive();
        } else if (element.get("inner").asText().equals("any")) {
            pattern.allowCombinations();
        }
        if (element.hasNonNull("until")) {
            pattern.until(new Condition(element.get("until").toString()));
        }
        if (element.hasNonNull("within")) {
            pattern.within(Duration.ofMillis(element.get("within").asLong()));
        }
        if (element.hasNonNull("after")) {
            pattern.within(Duration.ofMillis(element.get("after").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        }
        return pattern;
    }

    // -- what the jobs call ------------------------------------------------------------------------------------------

    /** A condition as JSON: kept as text, which can be serialized. */
    static class Condition extends IterativeCondition<Event> {
        private final String text;

        Condition(String text) {
            this.text = text;
        }

        @Override
        public boolean filter(Event event, Context<Event> context) throws Exception {
            return holds(JSON.readTree(text), event, context);
        }

        static boolean holds(JsonNode condition, Event event, Context<Event> context) throws Exception {
            int sum = 0;
            switch (condition.get(0).asText()) {
                case "is":
                    return event.kind.equals(condition.get(1).asText());
                case "in":
                    return condition.get(1).asText().contains(event.kind);
                case "above":
                    return event.price > condition.get(1).asInt();
                case "sum_below":
                    for (Event taken : context.getEventsForPattern(condition.get(1).asText())) {
                        sum += taken.price;
                    }
                    return sum + event.price < condition.get(2).asInt();
                case "and":
                    return holds(condition.get(1), event, context) && holds(condition.get(2), event, context);
                case "or":
                    return holds(condition.get(1), event, context) || holds(condition.get(2), event, context);
                default:
                    throw new IllegalArgumentException(condition.toString());
            }
        }
    }

    static class ByPrice implements EventComparator<Event> {
        @Override
        public int compare(Event left, Event right) {
            return Integer.compare(left.price, right.price);
        }
    }

    static class Record extends PatternProcessFunction<Event, String> {
        @Override
        public void processMatch(Map<String, List<Event>> match, Context context, Collector<String> out) {
            note("m", match, context);
        }

        static void note(String what, Map<String, List<Event>> match, Context context) {
            ArrayNode parts = JSON.createArrayNode();
            for (Map.Entry<String, List<Event>> part : match.entrySet()) {
                ArrayNode ids = JSON.createArrayNode();
                for (Event event : part.getValue()) {
                    ids.add(event.id);
                }
                parts.add(JSON.createArrayNode().add(part.getKey()).add(ids));
            }
            log.add(JSON.createArrayNode().add(what).add(parts).add(context.timestamp()));
        }
    }

    static class RecordWithTimeouts extends Record implements TimedOutPartialMatchHandler<Event> {
        @Override
        public void processTimedOutMatch(Map<String, List<Event>> match, Context context) {
            note("t", match, context);
        }
    }
}
