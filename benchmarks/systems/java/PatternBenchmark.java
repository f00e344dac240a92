import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.tuple.Tuple4;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.PatternSelectFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.CloseableIterator;

/** The job of benchmarks/jobs/pattern.py: heap state, no checkpoints. Arguments: records keys parallelism collect? */
public class PatternBenchmark {

    private static final long SCATTER = 2_654_435_761L;
    private static final long KINDS = 4;

    public static void main(String[] arguments) throws Exception {
        long records = Long.parseLong(arguments[0]);
        long keys = Long.parseLong(arguments[1]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        env.setParallelism(Integer.parseInt(arguments[2]));
        env.getConfig().enableObjectReuse();

        DataStream<Tuple3<Long, Long, Long>> events =
                env.fromSource(new NumberSequenceSource(1, records), WatermarkStrategy.noWatermarks(), "numbers")
                        .setParallelism(1)
                        .map(n -> Tuple3.of(n * SCATTER % keys, (n * SCATTER >> 13) % KINDS, n))
                        .returns(TypeInformation.of(new TypeHint<Tuple3<Long, Long, Long>>() {}))
                        .setParallelism(1)
                        .assignTimestampsAndWatermarks(
                                WatermarkStrategy.<Tuple3<Long, Long, Long>>forMonotonousTimestamps()
                                        .withTimestampAssigner((event, before) -> event.f2))
                        .setParallelism(1);

        Pattern<Tuple3<Long, Long, Long>, ?> pattern =
                Pattern.<Tuple3<Long, Long, Long>>begin("a")
                        .where(SimpleCondition.of(event -> event.f1 == 0))
                        .followedBy("b")
                        .where(SimpleCondition.of(event -> event.f1 == 1))
                        .followedBy("c")
                        .where(SimpleCondition.of(event -> event.f1 == 2))
                        .within(Duration.ofSeconds(10));

        DataStream<Tuple4<Long, Long, Long, Long>> times =
                CEP.pattern(events.keyBy(event -> event.f0, Types.LONG), pattern)
                        .select(
                                new PatternSelectFunction<
                                        Tuple3<Long, Long, Long>, Tuple4<Long, Long, Long, Long>>() {
                                    @Override
                                    public Tuple4<Long, Long, Long, Long> select(
                                            Map<String, List<Tuple3<Long, Long, Long>>> match) {
                                        Tuple3<Long, Long, Long> first = match.get("a").get(0);
                                        return Tuple4.of(
                                                first.f0,
                                                first.f2,
                                                match.get("b").get(0).f2,
                                                match.get("c").get(0).f2);
                                    }
                                });

        if (arguments.length > 3) {
            PrintStream results = System.out;
            try (CloseableIterator<Tuple4<Long, Long, Long, Long>> found = times.executeAndCollect()) {
                found.forEachRemaining(one -> results.printf("%d %d %d %d%n", one.f0, one.f1, one.f2, one.f3));
            }
        } else {
            times.sinkTo(new DiscardingSink<>());
            env.execute("pattern");
        }
    }
}
