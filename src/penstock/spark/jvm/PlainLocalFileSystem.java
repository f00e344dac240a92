package penstock.spark;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsAction;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, except that it sets permissions by a system call.
 *
 * Without Hadoop's native library the original runs a chmod process for every file and directory it makes: dozens
 * per micro-batch. Everything else, renames above all, is the original's.
 *
 * The source keeps to Java without type arguments: Janino, which compiles it where there is no JDK, has them only in part.
 */
public final class PlainLocalFileSystem extends LocalFileSystem {

  public PlainLocalFileSystem() {
    super(new Raw());
  }

  static final class Raw extends RawLocalFileSystem {

    public void setPermission(Path path, FsPermission permission) throws IOException {
      File file = pathToFile(path);
      if (permission.getStickyBit()) {
        // Has no name in java.nio; rare enough to be done the slow way.
        super.setPermission(path, permission);
        return;
      }
      Set wanted = EnumSet.noneOf(PosixFilePermission.class);
      grant(wanted, permission.getUserAction(),
          PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);
      grant(wanted, permission.getGroupAction(),
          PosixFilePermission.GROUP_READ, PosixFilePermission.GROUP_WRITE, PosixFilePermission.GROUP_EXECUTE);
      grant(wanted, permission.getOtherAction(),
          PosixFilePermission.OTHERS_READ, PosixFilePermission.OTHERS_WRITE, PosixFilePermission.OTHERS_EXECUTE);
      try {
        Files.setPosixFilePermissions(file.toPath(), wanted);
      } catch (UnsupportedOperationException noPosix) {
        super.setPermission(path, permission);
      }
    }

    private static void grant(
        Set wanted, FsAction action, PosixFilePermission read, PosixFilePermission write, PosixFilePermission execute) {
      if (action.implies(FsAction.READ)) {
        wanted.add(read);
      }
      if (action.implies(FsAction.WRITE)) {
        wanted.add(write);
      }
      if (action.implies(FsAction.EXECUTE)) {
        wanted.add(execute);
      }
    }
  }
}
