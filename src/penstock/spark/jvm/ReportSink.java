package penstock.spark;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.streaming.Sink;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.sources.StreamSinkProvider;
import org.apache.spark.sql.streaming.OutputMode;
import scala.Option;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction0;
import scala.runtime.AbstractFunction2;

/**
 * Runs a batch and hands the rows that reach the driver to the job master, in one call.
 *
 * foreachBatch would wrap the planned batch in a second Dataset, analyse, optimise and plan that one too, and fetch its
 * rows over one more socket: half of the planning thread's work in a small batch.
 *
 * The source keeps to Java without type arguments: Janino, which compiles it where there is no JDK, has them only in part.
 */
public final class ReportSink implements StreamSinkProvider {

  /** The job master's end, implemented in Python. */
  public interface Listener {
    /** Rows of a batch: for each the length of its frame (4 bytes) and the frame. */
    void batch(long batchId, byte[] frames);

    /** The same in a file, which is gone when the call returns. */
    void stored(long batchId, String path);
  }

  /** What is larger goes through a file: a call would send it as one line of base 64. */
  private static final int LARGEST_CALL = 65536;

  private static final Map LISTENERS = new ConcurrentHashMap();
  private static final Map DIRECTORIES = new ConcurrentHashMap();

  public static void register(String name, Listener listener, String directory) {
    DIRECTORIES.put(name, directory);
    LISTENERS.put(name, listener);
  }

  public static void forget(String name) {
    LISTENERS.remove(name);
    DIRECTORIES.remove(name);
  }

  public Sink createSink(
      SQLContext context,
      scala.collection.immutable.Map parameters,
      scala.collection.immutable.Seq partitionColumns,
      OutputMode mode) {
    Object name = parameters.apply("listener");
    Object listener = LISTENERS.get(name);
    if (listener == null) {
      throw new IllegalStateException("the job of this query is not running in this process");
    }
    return new Reports((Listener) listener, new File((String) DIRECTORIES.get(name)));
  }

  static final class Reports implements Sink {
    private final Listener listener;
    private final File directory;

    Reports(Listener listener, File directory) {
      this.listener = listener;
      this.directory = directory;
    }

    public void addBatch(long batchId, Dataset data) {
      // Every new session sets Spark's own answer again.
      SQLConf.setSQLConfGetter(new Settings(((SparkSession) data.sparkSession()).sessionState().conf()));
      RDD rdd = data.queryExecution().toRdd();
      Object[] parts =
          (Object[]) rdd.sparkContext().runJob(rdd, new Gather(), ClassTag$.MODULE$.apply(byte[].class));
      long size = 0;
      for (int i = 0; i < parts.length; i++) {
        size += ((byte[]) parts[i]).length;
      }
      if (size > LARGEST_CALL) {
        store(batchId, parts);
        return;
      }
      ByteBuffer buffer = ByteBuffer.allocate((int) size);
      for (int i = 0; i < parts.length; i++) {
        buffer.put((byte[]) parts[i]);
      }
      this.listener.batch(batchId, buffer.array());
    }

    private void store(long batchId, Object[] parts) {
      File file = null;
      try {
        file = File.createTempFile("batch", ".frames", this.directory);
        FileOutputStream out = new FileOutputStream(file);
        try {
          for (int i = 0; i < parts.length; i++) {
            out.write((byte[]) parts[i]);
          }
        } finally {
          out.close();
        }
        this.listener.stored(batchId, file.getPath());
      } catch (IOException error) {
        throw new IllegalStateException("a batch cannot be handed over in " + this.directory, error);
      } finally {
        if (file != null) {
          file.delete();
        }
      }
    }
  }

  /**
   * One partition's rows as bytes.
   *
   * Not a lambda, on purpose: Spark reads the byte code of every lambda it ships, to see what it captures, each time anew.
   */
  static final class Gather extends AbstractFunction2 implements Serializable {
    public Object apply(Object context, Object rows) {
      Iterator iterator = (Iterator) rows;
      ByteArrayOutputStream bytes = new ByteArrayOutputStream();
      try {
        DataOutputStream out = new DataOutputStream(bytes);
        while (iterator.hasNext()) {
          byte[] frame = ((InternalRow) iterator.next()).getBinary(1);
          out.writeInt(frame.length);
          out.write(frame);
        }
      } catch (IOException impossible) {
        throw new IllegalStateException(impossible);
      }
      return bytes.toByteArray();
    }
  }

  /**
   * The session's settings, also where Spark forgets them.
   *
   * The threads that serve state to Python workers belong to no session and no task, so Spark's defaults hold there: for
   * every task they generate and compile code that the session has switched off, a third of their work.
   */
  static final class Settings extends AbstractFunction0 {
    private final SQLConf otherwise;

    Settings(SQLConf otherwise) {
      this.otherwise = otherwise;
    }

    public Object apply() {
      Option active = SparkSession.getActiveSession();
      if (active.isDefined() && !((SparkSession) active.get()).sparkContext().isStopped()) {
        return ((SparkSession) active.get()).sessionState().conf();
      }
      return this.otherwise;
    }
  }
}
