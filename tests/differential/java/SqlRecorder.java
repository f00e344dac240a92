import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.MathContext;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.Period;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.JobManagerOptions;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.catalog.Column;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs SQL scripts in Flink, one for each line of a connection, and answers with the result of each statement.
 *
 * <p>A request is {@code {"batch": false, "options": {...}, "statements": [...]}}. A row is a list of texts, its kind
 * and its values, such as {@code ["+I", "1", "'a'", "2.50m"]}: they do not depend on the language.
 */
public class SqlRecorder {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(RestOptions.BIND_PORT, "0");
        configuration.set(RestOptions.ADDRESS, "localhost");
        configuration.set(JobManagerOptions.ADDRESS, "localhost");
        configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.parse("256m"));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.parse("64m"));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.parse("64m"));
        MiniClusterConfiguration cluster = new MiniClusterConfiguration.Builder()
                .setConfiguration(configuration).setNumTaskManagers(1).setNumSlotsPerTaskManager(8).build();
        MiniCluster running = new MiniCluster(cluster);
        running.start();
        int rest = running.getRestAddress().get().getPort();
        try (ServerSocket server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
            System.out.println(server.getLocalPort());
            System.out.flush();
            while (true) {
                try (Socket client = server.accept()) {
                    serve(client, rest);
                }
            }
        }
    }

    private static void serve(Socket client, int rest) throws Exception {
        BufferedReader requests =
                new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(client.getOutputStream(), true, StandardCharsets.UTF_8);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(run(JSON.readTree(line), rest)));
        }
    }

    private static ArrayNode run(JsonNode request, int rest) {
        EnvironmentSettings.Builder settings = EnvironmentSettings.newInstance();
        settings = request.path("batch").asBoolean() ? settings.inBatchMode() : settings.inStreamingMode();
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createRemoteEnvironment("localhost", rest);
        environment.setParallelism(1);
        StreamTableEnvironment tables = StreamTableEnvironment.create(environment, settings.build());
        tables.getConfig().set("table.local-time-zone", "UTC");
        request.path("options").fields().forEachRemaining(
                option -> tables.getConfig().set(option.getKey(), option.getValue().asText()));
        ArrayNode results = JSON.createArrayNode();
        for (JsonNode statement : request.path("statements")) {
            ObjectNode result = results.addObject();
            try {
                answer(tables, statement.asText(), result);
            } catch (Throwable error) {
                result.put("error", error.getClass().getSimpleName());
                StringBuilder message = new StringBuilder();
                for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                    message.append(cause.getClass().getSimpleName()).append(": ")
                            .append(cause.getMessage()).append("\n");
                }
                result.put("message", message.toString());
            }
        }
        return results;
    }

    private static void answer(StreamTableEnvironment tables, String statement, ObjectNode result) throws Exception {
        TableResult done = tables.executeSql(statement);
        ArrayNode columns = result.putArray("columns");
        for (Column column : done.getResolvedSchema().getColumns()) {
            columns.addArray().add(column.getName()).add(column.getDataType().getLogicalType().asSummaryString());
        }
        result.put("kind", done.getResultKind().name());
        ArrayNode rows = result.putArray("rows");
        try (CloseableIterator<Row> iterator = done.collect()) {
            while (iterator.hasNext()) {
                Row row = iterator.next();
                ArrayNode values = rows.addArray().add(row.getKind().shortString());
                for (int i = 0; i < row.getArity(); i++) {
                    values.add(text(row.getField(i)));
                }
            }
        }
    }

    private static String text(Object value) {
        if (value == null) {
            return "NULL";
        } else if (value instanceof String) {
            return "'" + value + "'";
        } else if (value instanceof Boolean) {
            return value.toString().toUpperCase();
        } else if (value instanceof BigDecimal) {
            return ((BigDecimal) value).toPlainString() + "m";
        } else if (value instanceof Float || value instanceof Double) {
            double number = ((Number) value).doubleValue();
            if (Double.isNaN(number) || Double.isInfinite(number)) {
                return String.valueOf(number);
            }
            MathContext digits = new MathContext(value instanceof Float ? 6 : 14);
            return new BigDecimal(number).round(digits).stripTrailingZeros() + "d";
        } else if (value instanceof byte[]) {
            StringBuilder hex = new StringBuilder("x'");
            for (byte one : (byte[]) value) {
                hex.append(String.format("%02x", one));
            }
            return hex.append("'").toString();
        } else if (value instanceof LocalDate) {
            return value.toString();
        } else if (value instanceof LocalTime) {
            return time((LocalTime) value);
        } else if (value instanceof LocalDateTime) {
            return moment((LocalDateTime) value);
        } else if (value instanceof Instant) {
            return moment(LocalDateTime.ofInstant((Instant) value, ZoneOffset.UTC)) + "Z";
        } else if (value instanceof Period) {
            return ((Period) value).toTotalMonths() + " months";
        } else if (value instanceof Duration) {
            return ((Duration) value).toMillis() + " ms";
        } else if (value.getClass().isArray()) {
            StringBuilder parts = new StringBuilder();
            for (int i = 0; i < Array.getLength(value); i++) {
                parts.append(i == 0 ? "" : ", ").append(text(Array.get(value, i)));
            }
            return "[" + parts + "]";
        } else if (value instanceof Map) {
            TreeMap<String, String> entries = new TreeMap<>();
            ((Map<?, ?>) value).forEach((key, part) -> entries.put(text(key), text(part)));
            StringBuilder parts = new StringBuilder();
            entries.forEach(
                    (key, part) -> parts.append(parts.length() == 0 ? "" : ", ").append(key + ": " + part));
            return "{" + parts + "}";
        } else if (value instanceof Row) {
            Row row = (Row) value;
            StringBuilder parts = new StringBuilder();
            for (int i = 0; i < row.getArity(); i++) {
                parts.append(i == 0 ? "" : ", ").append(text(row.getField(i)));
            }
            return "(" + parts + ")";
        }
        return value.toString();
    }

    private static String moment(LocalDateTime value) {
        return value.format(DateTimeFormatter.ofPattern("uuuu-MM-dd")) + "T" + time(value.toLocalTime());
    }

    private static String time(LocalTime value) {
        String text = value.format(DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS"));
        return text.replaceAll("\\.?0*$", "");
    }
}
